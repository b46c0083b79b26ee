"""How unevenly classes do. Every measure takes accuracies (…, U) of the seen classes and reduces the last axis."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from classgap.audit.accuracy import ClassCounts
from classgap.audit.groups import thirds
from classgap.audit.intervals import (
    Floats,
    centred_interval,
    newcombe,
    percentile_interval,
    resampled_accuracies,
    wilson,
)
from classgap.audit.records import Gap, Interval
from classgap.audit.samples import Integers

CHANCE_REPLICATES = 200  # a mean over replicates needs fewer of them than an interval's ends


def gini(accuracy_U: Floats) -> NDArray[np.float64]:
    """Gini coefficient Σ_i Σ_j |a_i - a_j| / (2 U Σ_i a_i), 0 if all are 0.

    >>> float(gini(np.array([1.0, 0.0])))
    0.5
    """
    size = accuracy_U.shape[-1]
    ordered = np.sort(accuracy_U, axis=-1)
    weights = 2 * np.arange(1, size + 1) - size - 1  # |a_i - a_j| summed over pairs, by rank
    total = ordered.sum(axis=-1)
    return (ordered @ weights) / (size * np.where(total > 0, total, 1))


def worst_tenth(accuracy_U: Floats) -> NDArray[np.float64]:
    """Mean of the lowest ⌈U/10⌉ accuracies.

    >>> float(worst_tenth(np.arange(20.0)))
    0.5
    """
    count = tenth(accuracy_U.shape[-1])
    return np.partition(accuracy_U, count - 1, axis=-1)[..., :count].mean(axis=-1)


def tenth(classes: int) -> int:
    """How many classes the worst 10 % are.

    >>> tenth(10), tenth(11)
    (1, 2)
    """
    return math.ceil(classes / 10)


def easy_hard(accuracy_U: Floats) -> NDArray[np.float64]:
    """Mean of the easy third minus mean of the hard third, thirds by these accuracies (see ``groups.thirds``).

    >>> float(easy_hard(np.array([0.9, 0.1, 0.5])))
    0.8
    """
    ordered = np.sort(accuracy_U, axis=-1)
    size = accuracy_U.shape[-1]
    outer = size // 3 + (size % 3 == 2)
    return ordered[..., size - outer :].mean(axis=-1) - ordered[..., :outer].mean(axis=-1)


def best_worst(accuracy_U: Floats) -> NDArray[np.float64]:
    """Highest minus lowest accuracy."""
    return accuracy_U.max(axis=-1) - accuracy_U.min(axis=-1)


def worst_class(accuracy_U: Floats) -> NDArray[np.float64]:
    """Lowest accuracy."""
    return accuracy_U.min(axis=-1)


def std(accuracy_U: Floats) -> NDArray[np.float64]:
    """Standard deviation over classes, by their number."""
    return accuracy_U.std(axis=-1)


MEASURES: dict[str, Callable[[Floats], NDArray[np.float64]]] = {
    "easy_hard": easy_hard,
    "best_worst": best_worst,
    "worst_class": worst_class,
    "worst_tenth": worst_tenth,
    "std": std,
    "gini": gini,
}


def gap(
    counts: ClassCounts,
    replicates_RU: Floats,
    names: tuple[str, ...],
    *,
    ranking_K: Floats | None,
    level: float,
    rng: np.random.Generator,
) -> Gap:
    """All measures with their intervals.

    Intervals keep the classes fixed that a measure names here (which are easy and hard, best and worst): they say how
    sure the difference between *these* classes is. That they were picked for their accuracy is what ``by_chance``
    accounts for.
    """
    seen_U = np.flatnonzero(counts.seen_K)
    accuracy_U, support_U, correct_U = counts.accuracy_K[seen_U], counts.support_K[seen_U], counts.correct_K[seen_U]
    worst, best = int(accuracy_U.argmin()), int(accuracy_U.argmax())
    values = {name: float(measure(accuracy_U)) for name, measure in MEASURES.items() if name != "easy_hard"}
    lowest = np.argsort(accuracy_U, kind="stable")[: tenth(len(seen_U))]
    intervals = {
        "best_worst": newcombe((correct_U[best], support_U[best]), (correct_U[worst], support_U[worst]), level),
        "worst_class": wilson(correct_U[worst], support_U[worst], level),
        "worst_tenth": mean_interval(replicates_RU, lowest, correct_U, support_U, level),
        "std": centred_interval(std(replicates_RU), values["std"], level),
        "gini": centred_interval(gini(replicates_RU), values["gini"], level),
    }
    apart = None
    if len(seen_U) > 1:
        parts = thirds(
            (counts.accuracy_K if ranking_K is None else ranking_K)[seen_U], np.ones(len(seen_U), dtype=bool)
        )
        easy, hard = parts["easy"], parts["hard"]
        apart = float(accuracy_U[easy].mean() - accuracy_U[hard].mean())
        intervals["easy_hard"] = _difference_interval(replicates_RU, easy, hard, correct_U, support_U, level)
    return Gap(
        easy_hard=apart,
        best_worst=values["best_worst"],
        worst_class=values["worst_class"],
        worst_tenth=values["worst_tenth"],
        std=values["std"],
        gini=values["gini"],
        intervals=intervals,
        by_chance=_by_chance(counts, support_U, rng, ranked_here=ranking_K is None),
        worst_name=names[seen_U[worst]],
        best_name=names[seen_U[best]],
    )


def mean_interval(
    replicates_RU: Floats, members_U: Integers, correct_U: Integers, support_U: Integers, level: float
) -> Interval:
    """Interval of the mean accuracy of some classes, from the bootstrap.

    If every sample of the classes is right, or every one wrong, resampling them shows no doubt at all; then it is the
    Wilson interval of their samples together.
    """
    right, total = int(correct_U[members_U].sum()), int(support_U[members_U].sum())
    if right in (0, total):
        return wilson(right, total, level)
    return percentile_interval(replicates_RU[:, members_U].mean(axis=1), level)


def _difference_interval(
    replicates_RU: Floats, first_U: Integers, second_U: Integers, correct_U: Integers, support_U: Integers, level: float
) -> Interval:
    """Interval of the difference of two mean accuracies; Newcombe's if resampling shows no doubt about either."""
    pooled = [(int(correct_U[part].sum()), int(support_U[part].sum())) for part in (first_U, second_U)]
    if all(right in (0, total) for right, total in pooled):
        return newcombe(pooled[0], pooled[1], level)
    return percentile_interval(replicates_RU[:, first_U].mean(axis=1) - replicates_RU[:, second_U].mean(axis=1), level)


def _by_chance(
    counts: ClassCounts, support_U: Integers, rng: np.random.Generator, *, ranked_here: bool
) -> dict[str, float]:
    equal_U = np.full(len(support_U), counts.balanced_accuracy) * support_U
    draws_RU = resampled_accuracies(equal_U, support_U, CHANCE_REPLICATES, rng)
    chance = {name: float(measure(draws_RU).mean()) for name, measure in MEASURES.items() if len(support_U) > 1}
    if chance and not ranked_here:
        chance["easy_hard"] = 0.0  # classes ranked by another model's results are not picked by these
    return chance
