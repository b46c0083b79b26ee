"""The losses on features that the papers compare with, once more as plain loops; see ``slow_references``."""

from __future__ import annotations

import math

from slow_references import cross_entropy, mean_vector, minus, norm, rows_by_class

from classgap.testing import Inputs


def dot(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def unit(row: list[float]) -> list[float]:
    return [x / norm(row) for x in row]


def mean_cross_entropy(inputs: Inputs) -> float:
    pairs = list(zip(inputs.logits.tolist(), inputs.targets.tolist(), strict=True))
    return sum(cross_entropy(z, y) for z, y in pairs) / len(pairs)


class SlowCenter:
    """Center loss, Eq. (2), (4) and (5); trained centers stay where they are, as nothing steps them."""

    def __init__(self, *, strength: float = 0.008, centers: str = "running", rate: float = 0.5) -> None:
        self.strength, self.moves, self.rate = strength, centers == "running", rate

    def __call__(self, batches: list[Inputs]) -> list[float]:
        self.centers: dict[int, list[float]] = {}
        return [self.one(inputs) for inputs in batches]

    def one(self, inputs: Inputs) -> float:
        total = 0.0
        for c, rows in rows_by_class(inputs).items():
            center = self.centers.get(c, [0.0] * len(rows[0]))
            total += sum(norm(minus(row, center)) ** 2 for row in rows) / 2
            if self.moves:
                steps = [sum(column) for column in zip(*(minus(center, row) for row in rows), strict=True)]
                self.centers[c] = minus(center, [self.rate * step / (1 + len(rows)) for step in steps])
        return mean_cross_entropy(inputs) + self.strength * total / len(inputs.targets)


class SlowContrastive:
    """SupCon Eq. (2)."""

    def __init__(self, *, strength: float = 1.0, cross_entropy: float = 1.0, temperature: float = 0.1) -> None:
        self.strength, self.cross_entropy, self.temperature = strength, cross_entropy, temperature

    def __call__(self, batches: list[Inputs]) -> list[float]:
        return [self.one(inputs) for inputs in batches]

    def one(self, inputs: Inputs) -> float:
        rows, targets = [unit(row) for row in inputs.features.tolist()], inputs.targets.tolist()
        total = 0.0
        for i, row in enumerate(rows):
            others = [j for j in range(len(rows)) if j != i]
            positives = [j for j in others if targets[j] == targets[i]]
            below = sum(math.exp(dot(row, rows[a]) / self.temperature) for a in others)
            for p in positives:
                total -= math.log(math.exp(dot(row, rows[p]) / self.temperature) / below) / len(positives)
        return self.cross_entropy * mean_cross_entropy(inputs) + self.strength * total / len(rows)


class SlowTriplet:
    """The hinge of the farthest class mate and the nearest stranger."""

    def __init__(
        self,
        *,
        strength: float = 1.0,
        margin: float | str = 0.3,
        distance: str = "euclidean",
        normalize: bool = False,
    ) -> None:
        self.strength, self.margin, self.distance, self.normalize = strength, margin, distance, normalize

    def __call__(self, batches: list[Inputs]) -> list[float]:
        return [self.one(inputs) for inputs in batches]

    def apart(self, a: list[float], b: list[float]) -> float:
        return -dot(a, b) if self.distance == "product" else norm(minus(a, b))

    def one(self, inputs: Inputs) -> float:
        rows, targets = inputs.features.tolist(), inputs.targets.tolist()
        rows = [unit(row) for row in rows] if self.normalize else rows
        total = 0.0
        for i, row in enumerate(rows):
            mates = [self.apart(row, rows[j]) for j in range(len(rows)) if j != i and targets[j] == targets[i]]
            strangers = [self.apart(row, rows[j]) for j in range(len(rows)) if targets[j] != targets[i]]
            if mates and strangers:
                gap = max(mates) - min(strangers)
                total += math.log(1 + math.exp(gap)) if self.margin == "soft" else max(0.0, gap + self.margin)
        return mean_cross_entropy(inputs) + self.strength * total / len(rows)


class SlowRange:
    """Range loss: harmonic means of the widest pairs, and the hinge of the nearest centers."""

    def __init__(
        self, *, intra: float = 5e-5, inter: float = 1e-4, widest: int = 2, margin: float = 2e4, squared: bool = True
    ) -> None:
        self.intra, self.inter, self.widest, self.margin, self.squared = intra, inter, widest, margin, squared

    def __call__(self, batches: list[Inputs]) -> list[float]:
        return [self.one(inputs) for inputs in batches]

    def apart(self, a: list[float], b: list[float]) -> float:
        return norm(minus(a, b)) ** (2 if self.squared else 1)

    def one(self, inputs: Inputs) -> float:
        by_class = rows_by_class(inputs)
        intra = 0.0
        for rows in by_class.values():
            ranges = [self.apart(a, b) for i, a in enumerate(rows) for b in rows[:i]]
            widest = sorted(ranges, reverse=True)[: self.widest]
            intra += len(widest) / sum(1 / each for each in widest) if widest else 0.0
        centers = [mean_vector(rows) for rows in by_class.values()]
        between = [self.apart(a, b) for i, a in enumerate(centers) for b in centers[:i]]
        inter = max(0.0, self.margin - min(between)) if between else 0.0
        return mean_cross_entropy(inputs) + self.intra * intra + self.inter * inter


class SlowSpreadOut:
    """ELM Eq. (7) to (9)."""

    def __init__(self, *, strength: float = 1.0, pairs: str = "different") -> None:
        self.strength, self.pairs = strength, pairs

    def __call__(self, batches: list[Inputs]) -> list[float]:
        return [self.one(inputs) for inputs in batches]

    def one(self, inputs: Inputs) -> float:
        rows, targets = [unit(row) for row in inputs.features.tolist()], inputs.targets.tolist()
        cosines = [
            dot(rows[i], rows[j])
            for i in range(len(rows))
            for j in range(i)
            if self.pairs == "all" or targets[i] != targets[j]
        ]
        if not cosines:
            return mean_cross_entropy(inputs)
        first = sum(cosines) / len(cosines)
        second = sum(cosine**2 for cosine in cosines) / len(cosines)
        return mean_cross_entropy(inputs) + self.strength * (first**2 + max(0.0, second - 1 / len(rows[0])))


class SlowHybrid:
    """Liu and Abbeel's contrast as in ELM Sec. 3.2, over the batch and a queue."""

    def __init__(
        self, *, strength: float = 1.0, temperature: float = 0.1, normalize: bool = True, queue: int = 4096
    ) -> None:
        self.strength, self.temperature, self.normalize, self.size = strength, temperature, normalize, queue

    def __call__(self, batches: list[Inputs]) -> list[float]:
        self.queue: list[list[float]] = []
        return [self.one(inputs) for inputs in batches]

    def one(self, inputs: Inputs) -> float:
        scores = inputs.logits.tolist()
        scores = [unit(row) for row in scores] if self.normalize else scores
        total = 0.0
        for i, (row, y) in enumerate(zip(scores, inputs.targets.tolist(), strict=True)):
            others = [other for j, other in enumerate(scores) if j != i] + self.queue
            total += math.log(1 + sum(math.exp((other[y] - row[y]) / self.temperature) for other in others))
        self.queue = (self.queue + scores)[-self.size :] if self.size else []
        return mean_cross_entropy(inputs) + self.strength * total / len(scores)


class SlowDROLT:
    """DRO-LT with log-probabilities over samples, as its code is written: ε taken off the class's own logits."""

    def __init__(
        self,
        epsilons: list[float],
        centroids: list[list[float]] | None,
        *,
        strength: float = 1.0,
        temperature: float = 1.0,
        squared: bool = False,
        average: str = "class",
        momentum: float = 0.9,
    ) -> None:
        self.epsilons, self.given, self.strength, self.temperature = epsilons, centroids, strength, temperature
        self.power, self.average, self.momentum = 2 if squared else 1, average, momentum

    def __call__(self, batches: list[Inputs]) -> list[float]:
        self.centroids = dict(enumerate(self.given or []))
        return [self.one(inputs) for inputs in batches]

    def one(self, inputs: Inputs) -> float:
        rows, targets = inputs.features.tolist(), inputs.targets.tolist()
        losses = {}
        for c, members in rows_by_class(inputs).items():
            if self.given is None:
                self.follow(c, mean_vector(members))
            logits = []
            for row, target in zip(rows, targets, strict=True):
                logit = -(norm(minus(self.centroids[c], row)) ** self.power)
                logits.append((logit - self.epsilons[c] * (target == c)) / self.temperature)
            total = sum(math.exp(logit) for logit in logits)
            losses[c] = [
                -math.log(math.exp(logit) / total) for logit, target in zip(logits, targets, strict=True) if target == c
            ]
        if self.average == "class":
            term = sum(sum(each) / len(each) for each in losses.values()) / len(losses)
        else:
            term = sum(sum(each) for each in losses.values()) / len(rows)
        return mean_cross_entropy(inputs) + self.strength * term

    def follow(self, c: int, mean: list[float]) -> None:
        old = self.centroids.get(c, mean)
        self.centroids[c] = [self.momentum * a + (1 - self.momentum) * b for a, b in zip(old, mean, strict=True)]


class SlowGaussianMixture:
    """LGM: cross-entropy with 1 + α times the own distance, and the likelihood; z are -d_k - ½ ln |Λ_k|."""

    def __init__(self, *, margin: float = 0.1, strength: float = 0.1, log_determinant: bool = False) -> None:
        self.margin, self.strength, self.log_determinant = margin, strength, log_determinant

    def __call__(self, batches: list[Inputs]) -> list[float]:
        return [self.one(inputs) for inputs in batches]

    def one(self, inputs: Inputs) -> float:
        halves = [0.0] * inputs.logits.shape[1]
        if self.log_determinant:
            halves = [sum(row) / 2 for row in inputs.head.log_variance.tolist()]
        total = 0.0
        for z, y in zip(inputs.logits.tolist(), inputs.targets.tolist(), strict=True):
            distance = -(z[y] + halves[y])
            moved = [*z[:y], -(1 + self.margin) * distance - halves[y], *z[y + 1 :]]
            total += cross_entropy(moved, y) + self.strength * (distance + halves[y])
        return total / len(inputs.targets)
