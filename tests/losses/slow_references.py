"""The losses once more, as plain loops over Python numbers that share no code with classgap.

Each reference takes successive training batches and returns the loss of each.
"""

from __future__ import annotations

import math
from collections import defaultdict

from classgap.testing import Inputs

Rows = dict[int, list[list[float]]]


def rows_by_class(inputs: Inputs) -> Rows:
    rows: Rows = defaultdict(list)
    for target, row in zip(inputs.targets.tolist(), inputs.features.tolist(), strict=True):
        rows[target].append(row)
    return rows


def norm(vector: list[float], p: float = 2.0) -> float:
    if math.isinf(p):
        return max(abs(x) for x in vector)
    return sum(abs(x) ** p for x in vector) ** (1 / p)


def minus(a: list[float], b: list[float]) -> list[float]:
    return [x - y for x, y in zip(a, b, strict=True)]


def mean_vector(rows: list[list[float]]) -> list[float]:
    return [sum(column) / len(rows) for column in zip(*rows, strict=True)]


def cross_entropy(logits: list[float], target: int) -> float:
    top = max(logits)
    return top + math.log(sum(math.exp(z - top) for z in logits)) - logits[target]


def pull_term(row: list[float], others: list[list[float]], slack: float) -> float:
    return math.log(1 + sum(math.exp(norm(minus(row, other)) ** 2 - slack) for other in others))


def growing_force(p: float) -> float:
    return (1 - p) * (math.log(p) - math.log(1 - p)) if p < 1 else 0.0


def blended(old: dict[int, float], key: int, new: float, decay: float) -> None:
    old[key] = new if key not in old else decay * old[key] + (1 - decay) * new


class SlowMR2:
    """MR² Eq. (1), (2), (4), (17)."""

    def __init__(
        self,
        num_classes: int,
        *,
        margin: float = 1.0,
        strength: float | str = "auto",
        p: float = 2.0,
        logit: str = "spread",
        slack: float | str = "spread",
        spread: str = "unbiased",
        normalize: bool = False,
        decay: float = 0.9,
        class_counts: list[float] | None = None,
        memory_size: int = 0,
    ) -> None:
        self.__dict__.update({name: value for name, value in locals().items() if name != "self"})

    def __call__(self, batches: list[Inputs]) -> list[float]:
        self.sizes: dict[int, float] = {}
        self.spreads: dict[int, float] = {}
        self.queue: list[tuple[list[float], int]] = []
        return [self.one(inputs) for inputs in batches]

    def one(self, inputs: Inputs) -> float:
        targets, rows = inputs.targets.tolist(), inputs.features.tolist()
        if self.normalize:
            rows = [[x / norm(row) for x in row] for row in rows]
        for k in set(targets):
            members = [row for row, target in zip(rows, targets, strict=True) if target == k]
            blended(self.sizes, k, sum(norm(row, self.p) ** 2 for row in members) / len(members), self.decay)
            center = mean_vector(members)
            squares = sum(norm(minus(row, center)) ** 2 for row in members)
            if self.spread == "plain":
                blended(self.spreads, k, squares / len(members), self.decay)
            elif len(members) > 1:
                blended(self.spreads, k, squares / (len(members) - 1), self.decay)
        logit = [self.logit_term(z, y) for z, y in zip(inputs.logits.tolist(), targets, strict=True)]
        growing = sum(max(0.0, growing_force(math.exp(-term))) for term in logit)
        rep, forces = zip(*(self.representation_term(i, rows, targets) for i in range(len(rows))), strict=True)
        strength = self.strength_now(growing, sum(forces))
        self.queue = (
            (self.queue + list(zip(rows, targets, strict=True)))[-self.memory_size :] if self.memory_size else []
        )
        return sum(a + strength * b for a, b in zip(logit, rep, strict=True)) / len(rows)

    def strength_now(self, growing: float, shrinking: float) -> float:
        if self.strength != "auto":
            return self.strength
        return min(0.1, 2 * growing / shrinking) if shrinking else 0.0

    def logit_term(self, logits: list[float], target: int) -> float:
        if self.class_counts is not None:
            total = sum(self.class_counts)
            logits = [z + math.log(n / total) for z, n in zip(logits, self.class_counts, strict=True)]
        gamma = {"uniform": self.margin, "none": 1.0}.get(self.logit)
        if gamma is None:
            roots = {k: size ** (1 / 3) for k, size in self.sizes.items()}
            gamma = self.margin * len(roots) * roots[target] / sum(roots.values())
        return cross_entropy([z / gamma for z in logits], target)

    def representation_term(self, i: int, rows: list[list[float]], targets: list[int]) -> tuple[float, float]:
        slack = self.slack
        if slack == "spread":
            slack = 2 * sum(self.spreads.values()) / max(len(self.spreads), 1)
        others = [row for j, row in enumerate(rows) if j != i and targets[j] == targets[i]]
        others += [row for row, target in self.queue if target == targets[i]]
        distances = [norm(minus(rows[i], other)) ** 2 for other in others]
        total = 1 + sum(math.exp(distance - slack) for distance in distances)
        force = sum(2 * distance * math.exp(distance - slack) / total for distance in distances)
        return math.log(total), force


class SlowRelease:
    """What the published MR² code computes."""

    def __init__(self, num_classes: int, *, source: str, strength: float, decay: float = 0.9) -> None:
        self.num_classes, self.source, self.strength, self.decay = num_classes, source, strength, decay

    def __call__(self, batches: list[Inputs]) -> list[float]:
        self.lengths: dict[int, float] = {}
        self.spreads: dict[int, float] = {}
        return [self.one(inputs) for inputs in batches]

    def one(self, inputs: Inputs) -> float:
        by_class = rows_by_class(inputs)
        p = 2 if self.source == "compiled" else 5
        for k, rows in by_class.items():
            center = mean_vector(rows)
            blended(self.lengths, k, norm(center, p) ** 2, self.decay)
            blended(self.spreads, k, sum(norm(minus(row, center), p) ** 2 for row in rows) / len(rows), self.decay)
        roots = {k: (self.lengths[k] + self.spreads[k]) ** (1 / 3) for k in self.lengths}
        logit = 0.0
        for z, y in zip(inputs.logits.tolist(), inputs.targets.tolist(), strict=True):
            gamma = self.num_classes * roots[y] / sum(roots.values())
            logit += cross_entropy([x / gamma for x in z], y) / len(inputs.targets)
        width = inputs.features.shape[1]
        mean_spread = 0.0 if self.source == "cifar" else sum(self.spreads.values()) / self.num_classes
        rep = 0.0
        for rows in by_class.values():
            for i, row in enumerate(rows):
                exponents = [(norm(minus(row, r)) ** 2 - 2 * mean_spread) / (10 * width) for r in rows]
                inside = sum(math.exp(e) for j, e in enumerate(exponents) if j != i)
                rep += math.log(1 + inside) / len(rows)
        factor = width if self.source == "compiled" else width / 10
        return logit + self.strength * factor * rep / self.num_classes


class SlowELM:
    """ELM Eq. (4) with Δ = ln(π_y' / π_y)."""

    def __init__(self, counts: list[float], alphas: list[float], strength: float) -> None:
        self.counts, self.alphas, self.strength = counts, alphas, strength

    def __call__(self, batches: list[Inputs]) -> list[float]:
        return [self.one(inputs) for inputs in batches]

    def one(self, inputs: Inputs) -> float:
        targets, rows = inputs.targets.tolist(), inputs.features.tolist()
        value = 0.0
        for i, (z, y) in enumerate(zip(inputs.logits.tolist(), targets, strict=True)):
            rivals = (math.exp(math.log(n / self.counts[y]) + z[k] - z[y]) for k, n in enumerate(self.counts) if k != y)
            others = [row for j, row in enumerate(rows) if j != i and targets[j] == y]
            value += math.log(1 + sum(rivals)) + self.strength * pull_term(rows[i], others, self.alphas[y])
        return value / len(rows)


class SlowDiscriminative:
    """LMDL Eq. (4.3) to (4.7), added to cross-entropy."""

    def __init__(
        self,
        *,
        radius: float = 0.5,
        distance: float = 6.0,
        compact: float = 1.0,
        separate: float = 1.0,
        shrink: float = 1e-3,
        momentum: float = 0.99,
        centroids: str = "partial",
    ) -> None:
        self.__dict__.update({name: value for name, value in locals().items() if name != "self"})

    def __call__(self, batches: list[Inputs]) -> list[float]:
        self.stored: dict[int, list[float]] = {}
        return [self.one(inputs) for inputs in batches]

    def one(self, inputs: Inputs) -> float:
        by_class = rows_by_class(inputs)
        compact = separate = shrink = 0.0
        for c, rows in by_class.items():
            current = mean_vector(rows)
            running = current
            if c in self.stored and self.centroids != "none":
                running = [
                    self.momentum * a + (1 - self.momentum) * b for a, b in zip(self.stored[c], current, strict=True)
                ]
            self.stored[c] = running
            compact += sum(max(0.0, norm(minus(row, running)) - self.radius) ** 2 for row in rows) / len(rows)
            separate += self.shortfall(running if self.centroids == "both" else current, c, inputs)
            shrink += norm(running)
        parts = self.compact * compact + self.separate * separate + self.shrink * shrink
        entropy = [cross_entropy(z, y) for z, y in zip(inputs.logits.tolist(), inputs.targets.tolist(), strict=True)]
        return sum(entropy) / len(entropy) + parts / len(by_class)

    def shortfall(self, point: list[float], c: int, inputs: Inputs) -> float:
        weight, bias = inputs.head.weight.tolist(), inputs.head.bias.tolist()
        scores = [sum(w * x for w, x in zip(row, point, strict=True)) + b for row, b in zip(weight, bias, strict=True)]
        worst = 0.0
        for i in range(len(weight)):
            if i != c:
                apart = norm(minus(weight[c], weight[i]))
                distance = abs(scores[c] - scores[i]) / apart
                sign = 1 if scores[i] > scores[c] else -1
                worst = max(worst, self.distance + distance * sign)
        return worst
