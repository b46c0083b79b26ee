"""The losses of logits once more, as plain loops over Python numbers that share no code with classgap.

Each reference takes successive training batches and returns the loss of each. The functions named ``…_after_a_pass``
build losses that have seen a pass over a training set, as a method would leave them.
"""

from __future__ import annotations

import math
from collections import defaultdict

from slow_references import cross_entropy, growing_force, norm

from classgap.losses import ConfusionalSpectralLoss, DifficultyBalancedLoss, FairDROLoss
from classgap.testing import Inputs

CONFUSIONS = [[0, 4, 1, 0, 2], [3, 0, 0, 1, 0], [0, 5, 0, 2, 1], [1, 0, 2, 0, 0], [0, 1, 0, 3, 0]]
CLASS_ACCURACIES = [0.95, 0.8, 0.35, 0.6, 0.1]
CLASS_LOSSES = ([0.3, 1.2, 0.7, 0.1, 2.0], [0.2, 0.9, 0.8, 0.4, 1.1])


def spectral_after_a_pass(**settings) -> ConfusionalSpectralLoss:
    loss = ConfusionalSpectralLoss(5, **settings)
    loss.update_confusion(CONFUSIONS)
    return loss


def fair_after_two_passes(**settings) -> FairDROLoss:
    loss = FairDROLoss(5, **settings)
    loss.update_weights(CLASS_LOSSES[0])
    loss.update_weights(CLASS_LOSSES[1], progress=0.25)
    return loss


def difficulty_after_an_epoch(**settings) -> DifficultyBalancedLoss:
    loss = DifficultyBalancedLoss(5, **settings)
    loss.update_accuracies([0.0, 0.0, 0.0, 0.0, 1.0])  # replaced by the next update
    loss.update_accuracies(CLASS_ACCURACIES)
    return loss


def probabilities(logits: list[float]) -> list[float]:
    return [math.exp(-cross_entropy(logits, k)) for k in range(len(logits))]


class SlowMean:
    """The mean over samples of some term, the same in every batch."""

    def __call__(self, batches: list[Inputs]) -> list[float]:
        return [self.one(inputs) for inputs in batches]

    def one(self, inputs: Inputs) -> float:
        rows = zip(inputs.logits.tolist(), inputs.targets.tolist(), inputs.features.tolist(), strict=True)
        terms = [self.term(*row) for row in rows]
        return sum(terms) / len(terms)

    def term(self, logits: list[float], target: int, features: list[float]) -> float:
        raise NotImplementedError


class SlowWeightedMean(SlowMean):
    """Terms that hold their weights, over the sum of weights instead of the number of samples."""

    weights: list[float]

    def one(self, inputs: Inputs) -> float:
        return super().one(inputs) * len(inputs.targets) / sum(self.weights[y] for y in inputs.targets.tolist())


class SlowCrossEntropy(SlowWeightedMean):
    def __init__(self, num_classes: int, *, label_smoothing: float = 0.0, weight=None) -> None:
        self.smoothing, self.weights = label_smoothing, weight or [1.0] * num_classes

    def term(self, logits: list[float], target: int, features: list[float]) -> float:
        even = self.smoothing / len(logits)
        wanted = [even + (1 - self.smoothing if k == target else 0) for k in range(len(logits))]
        return sum(t * w * cross_entropy(logits, k) for k, (t, w) in enumerate(zip(wanted, self.weights, strict=True)))


class SlowFeatureNorm(SlowMean):
    def __init__(self, strength: float) -> None:
        self.strength = strength

    def term(self, logits: list[float], target: int, features: list[float]) -> float:
        return cross_entropy(logits, target) + self.strength * norm(features) ** 2


class SlowBoundedNorm:
    """Cross-entropy and the squared length, whose pull on all lengths is at most twice cross-entropy's."""

    def __call__(self, batches: list[Inputs]) -> list[float]:
        return [self.one(inputs) for inputs in batches]

    def one(self, inputs: Inputs) -> float:
        entropies = [cross_entropy(z, y) for z, y in zip(inputs.logits.tolist(), inputs.targets.tolist(), strict=True)]
        squares = [norm(features) ** 2 for features in inputs.features.tolist()]
        growing = sum(max(0.0, growing_force(math.exp(-each))) for each in entropies)
        factor = 2 * growing / (2 * sum(squares))
        return sum(a + factor * b for a, b in zip(entropies, squares, strict=True)) / len(squares)


class SlowLogitAdjusted(SlowMean):
    def __init__(self, counts: list[float], tau: float) -> None:
        self.counts, self.tau = counts, tau

    def term(self, logits: list[float], target: int, features: list[float]) -> float:
        scaled = [n**self.tau * math.exp(z) for n, z in zip(self.counts, logits, strict=True)]
        return -math.log(scaled[target] / sum(scaled))


class SlowFocal(SlowMean):
    def __init__(self, gamma: float, form: str, weights: list[float]) -> None:
        self.gamma, self.form, self.weights = gamma, form, weights

    def term(self, logits: list[float], target: int, features: list[float]) -> float:
        if self.form == "softmax":
            right = [probabilities(logits)[target]]
        else:
            yes = [1 / (1 + math.exp(-z)) for z in logits]
            right = [p if k == target else 1 - p for k, p in enumerate(yes)]
        return self.weights[target] * sum(-((1 - p) ** self.gamma) * math.log(p) for p in right)


class SlowEqualization(SlowMean):
    """With every rare class dropped, or none."""

    def __init__(self, rare: set[int]) -> None:
        self.rare = rare

    def term(self, logits: list[float], target: int, features: list[float]) -> float:
        kept = [math.exp(z) for k, z in enumerate(logits) if k == target or k not in self.rare]
        return math.log(sum(kept)) - logits[target]


class SlowLDAM(SlowWeightedMean):
    def __init__(self, counts: list[float], *, margin: float, scale: float, weight=None) -> None:
        self.margins = [margin * (min(counts) / n) ** 0.25 for n in counts]
        self.scale, self.weights = scale, weight or [1.0] * len(counts)

    def term(self, logits: list[float], target: int, features: list[float]) -> float:
        shifted = [self.scale * (z - (self.margins[k] if k == target else 0)) for k, z in enumerate(logits)]
        return self.weights[target] * cross_entropy(shifted, target)


def class_means(inputs: Inputs) -> dict[int, float]:
    by_class: dict[int, list[float]] = defaultdict(list)
    for z, y in zip(inputs.logits.tolist(), inputs.targets.tolist(), strict=True):
        by_class[y].append(cross_entropy(z, y))
    return {c: sum(terms) / len(terms) for c, terms in by_class.items()}


class SlowGroupDRO:
    def __init__(self, num_classes: int, *, step: float, renormalize: bool = False) -> None:
        self.num_classes, self.step, self.renormalize = num_classes, step, renormalize

    def __call__(self, batches: list[Inputs]) -> list[float]:
        self.weights = [1.0] * self.num_classes
        return [self.one(class_means(inputs)) for inputs in batches]

    def one(self, losses: dict[int, float]) -> float:
        self.weights = [q * math.exp(self.step * losses.get(c, 0.0)) for c, q in enumerate(self.weights)]
        total = sum(self.weights[c] for c in losses) if self.renormalize else sum(self.weights)
        return sum(self.weights[c] * loss for c, loss in losses.items()) / total


class SlowFairDRO:
    """After the two passes of :func:`fair_after_two_passes`."""

    def __init__(self, radius: float) -> None:
        first, second = (self.answer(losses, radius) for losses in CLASS_LOSSES)
        self.weights = [0.25 * a + 0.75 * b for a, b in zip(first, second, strict=True)]

    @staticmethod
    def answer(losses: tuple[float, ...], radius: float) -> list[float]:
        mean = sum(losses) / len(losses)
        deviation = (sum((loss - mean) ** 2 for loss in losses) / len(losses)) ** 0.5
        return [(1 + (2 * radius) ** 0.5 * (loss - mean) / deviation) / len(losses) for loss in losses]

    def __call__(self, batches: list[Inputs]) -> list[float]:
        return [sum(self.weights[c] * loss for c, loss in class_means(inputs).items()) for inputs in batches]


class SlowDifficulty(SlowMean):
    """With the accuracies of :func:`difficulty_after_an_epoch`; ``None`` is the dynamic exponent."""

    def __init__(self, tau: float | None) -> None:
        if tau is None:
            bias = max(CLASS_ACCURACIES) / (min(CLASS_ACCURACIES) + 0.01) - 1
            tau = 1 + math.tanh(bias / 2)  # 2 / (1 + exp(-bias))
        powers = [(1 - accuracy) ** tau for accuracy in CLASS_ACCURACIES]
        self.weights = [5 * power / sum(powers) for power in powers]

    def term(self, logits: list[float], target: int, features: list[float]) -> float:
        return self.weights[target] * cross_entropy(logits, target)


class SlowSpectral(SlowMean):
    """With the confusions of :func:`spectral_after_a_pass`; the singular vectors by power iteration."""

    def __init__(self, strength: float) -> None:
        self.strength = strength
        size = range(len(CONFUSIONS))
        right = [1.0 for _ in size]
        for _ in range(2000):
            left = unit([sum(CONFUSIONS[i][j] * right[j] for j in size) for i in size])
            right = unit([sum(CONFUSIONS[i][j] * left[i] for i in size) for j in size])
        outer = [[a * b for b in right] for a in left]
        low, high = min(map(min, outer)), max(map(max, outer))
        self.weights = [[2 * (g - low) / (high - low) + 0.01 for g in row] for row in outer]

    def term(self, logits: list[float], target: int, features: list[float]) -> float:
        entropy = cross_entropy(logits, target)
        weight = self.weights[logits.index(max(logits))][target]
        return (1 - self.strength) * entropy + self.strength * weight * (entropy + math.log(weight))


def unit(vector: list[float]) -> list[float]:
    return [x / norm(vector) for x in vector]


class SlowMutualInformation:
    def __init__(self, *, concentrate: float, separate: float, decay: float) -> None:
        self.concentrate, self.separate, self.decay = concentrate, separate, decay

    def __call__(self, batches: list[Inputs]) -> list[float]:
        self.centroids: dict[int, list[float]] = {}
        return [self.one(inputs.logits.tolist(), inputs.targets.tolist()) for inputs in batches]

    def one(self, logits: list[list[float]], targets: list[int]) -> float:
        outputs = [probabilities(z) for z in logits]
        for c in set(targets):
            members = [p for p, y in zip(outputs, targets, strict=True) if y == c]
            mean = [sum(column) / len(members) for column in zip(*members, strict=True)]
            old = self.centroids.get(c, mean)
            self.centroids[c] = [self.decay * a + (1 - self.decay) * b for a, b in zip(old, mean, strict=True)]
        entropy = sum(cross_entropy(z, y) for z, y in zip(logits, targets, strict=True)) / len(targets)
        kl = sum(divergence(p, self.centroids[y]) for p, y in zip(outputs, targets, strict=True)) / len(targets)
        pairs = [(i, j) for i in range(len(targets)) for j in range(len(targets)) if targets[i] != targets[j]]
        gamma = sum(-dot_log(outputs[i], outputs[j]) for i, j in pairs) / len(targets) ** 2
        return entropy + self.concentrate * kl - self.separate * gamma


def dot_log(p: list[float], q: list[float]) -> float:
    return sum(a * math.log(b) for a, b in zip(p, q, strict=True))


def divergence(p: list[float], q: list[float]) -> float:
    return dot_log(p, p) - dot_log(p, q)
