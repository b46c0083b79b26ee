"""How unevenly classes do. Every measure takes accuracies (…, U) of the seen classes and reduces the last axis."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from classgap.audit._types import Floats, Integers
from classgap.audit.metrics.accuracy import ClassCounts
from classgap.audit.metrics.groups import thirds
from classgap.audit.results import Gap, Interval
from classgap.audit.stats.intervals import (
    centered_interval,
    draw_accuracies,
    newcombe_interval,
    percentile_interval,
    wilson_interval,
)

CHANCE_RESAMPLES = 200  # a mean over replicates needs fewer of them than an interval's ends


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
    count = tenth_size(accuracy_U.shape[-1])
    return np.partition(accuracy_U, count - 1, axis=-1)[..., :count].mean(axis=-1)


def tenth_size(classes: int) -> int:
    """How many classes the worst 10 % are.

    >>> tenth_size(10), tenth_size(11)
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


def compute_gap(
    counts: ClassCounts,
    replicates_RU: Floats,
    names: tuple[str, ...],
    *,
    ranking_K: Floats | None,
    shared_KBA: Integers | None,
    confidence_level: float,
    rng: np.random.Generator,
) -> Gap:
    """All measures with their intervals.

    Intervals keep the classes fixed that a measure names here (which are easy and hard, best and worst): they say how
    sure the difference between *these* classes is. That they were picked for their accuracy is what ``by_chance``
    accounts for.

    Args:
        counts: right and wrong of this model.
        replicates_RU: resampled accuracies of the seen classes.
        names: of all classes.
        ranking_K: what ranks the thirds in place of this model's accuracies.
        shared_KBA: if that is another model's results on the same samples, how many of each class are wrong or right
            by it and by this one.
        level: of intervals.
        rng: for what chance would do.
    """
    seen_U = np.flatnonzero(counts.seen_K)
    accuracy_U, support_U, correct_U = counts.accuracy_K[seen_U], counts.support_K[seen_U], counts.correct_K[seen_U]
    worst, best = int(accuracy_U.argmin()), int(accuracy_U.argmax())
    values = {name: float(measure(accuracy_U)) for name, measure in MEASURES.items() if name != "easy_hard"}
    lowest = np.argsort(accuracy_U, kind="stable")[: tenth_size(len(seen_U))]
    intervals = {
        "worst_class": wilson_interval(correct_U[worst], support_U[worst], confidence_level),
        "worst_tenth": mean_interval(replicates_RU, lowest, correct_U, support_U, confidence_level),
        "std": centered_interval(std(replicates_RU), values["std"], confidence_level),
        "gini": centered_interval(gini(replicates_RU), values["gini"], confidence_level),
    }
    if best != worst:
        pair = [(correct_U[k], support_U[k]) for k in (best, worst)]
        intervals["best_worst"] = newcombe_interval(pair[0], pair[1], confidence_level)
    apart = None
    if len(seen_U) > 1:
        parts = thirds(
            (counts.accuracy_K if ranking_K is None else ranking_K)[seen_U], np.ones(len(seen_U), dtype=bool)
        )
        easy, hard = parts["easy"], parts["hard"]
        apart = float(accuracy_U[easy].mean() - accuracy_U[hard].mean())
        intervals["easy_hard"] = _difference_interval(replicates_RU, easy, hard, correct_U, support_U, confidence_level)
    return Gap(
        easy_hard=apart,
        best_worst=values["best_worst"],
        worst_class=values["worst_class"],
        worst_tenth=values["worst_tenth"],
        std=values["std"],
        gini=values["gini"],
        intervals=intervals,
        expected_by_chance=_by_chance(counts, ranking_K, shared_KBA, rng),
        worst_name=names[seen_U[worst]],
        best_name=names[seen_U[best]],
    )


def mean_interval(
    replicates_RU: Floats, members_U: Integers, correct_U: Integers, support_U: Integers, confidence_level: float
) -> Interval:
    """Interval of the mean accuracy of some classes, from the bootstrap.

    If every sample of the classes is right, or every one wrong, resampling them shows no doubt at all; then it is the
    Wilson interval of their samples together.
    """
    right, total = int(correct_U[members_U].sum()), int(support_U[members_U].sum())
    if right in (0, total):
        return wilson_interval(right, total, confidence_level)
    return percentile_interval(replicates_RU[:, members_U].mean(axis=1), confidence_level, within=(0.0, 1.0))


def _difference_interval(
    replicates_RU: Floats,
    first_U: Integers,
    second_U: Integers,
    correct_U: Integers,
    support_U: Integers,
    confidence_level: float,
) -> Interval:
    """Interval of the difference of two mean accuracies; Newcombe's if resampling shows no doubt about either."""
    pooled = [(int(correct_U[part].sum()), int(support_U[part].sum())) for part in (first_U, second_U)]
    if all(right in (0, total) for right, total in pooled):
        return newcombe_interval(pooled[0], pooled[1], confidence_level)
    apart_R = replicates_RU[:, first_U].mean(axis=1) - replicates_RU[:, second_U].mean(axis=1)
    return percentile_interval(apart_R, confidence_level, within=(-1.0, 1.0))


def mean_by_third(ranking_RU: Floats, values_RU: Floats) -> dict[str, float]:
    """Mean of the values over the classes that each replicate's own ranking puts into a third, and over replicates.

    >>> mean_by_third(np.array([[0.9, 0.1, 0.5]]), np.array([[1.0, 2.0, 3.0]]))
    {'easy': 1.0, 'medium': 3.0, 'hard': 2.0}
    """
    ordered_RU = np.take_along_axis(values_RU, np.argsort(-ranking_RU, axis=1, kind="stable"), axis=1)
    classes = ordered_RU.shape[1]
    places = thirds(-np.arange(classes, dtype=np.float64), np.ones(classes, dtype=bool))
    return {name: float(ordered_RU[:, part].mean()) for name, part in places.items() if len(part)}


def _by_chance(
    counts: ClassCounts, ranking_K: Floats | None, shared_KBA: Integers | None, rng: np.random.Generator
) -> dict[str, float]:
    """Mean of each measure if all classes were equally good; ``easy_hard`` only if its ranking is understood."""
    support_U = counts.support_K[counts.seen_K]
    if len(support_U) == 1:
        return {}
    equal_U = np.full(len(support_U), counts.balanced_accuracy)
    draws_RU = draw_accuracies(equal_U, support_U, CHANCE_RESAMPLES, rng)
    chance = {name: float(measure(draws_RU).mean()) for name, measure in MEASURES.items()}
    if ranking_K is not None:
        del chance["easy_hard"]
    if shared_KBA is not None:
        chance["easy_hard"] = _shared_luck(shared_KBA[counts.seen_K], support_U, rng)
    return chance


def _shared_luck(shared_UBA: Integers, support_U: Integers, rng: np.random.Generator) -> float:
    """The gap between thirds that another model ranks on the same samples, if all classes were equally good for both.

    Two models fail on much the same samples. A class with many of these by bad luck is ranked hard by the one, and
    is low for the other.
    """
    share_C = (shared_UBA.reshape(len(support_U), 4) / support_U[:, None]).mean(axis=0)
    drawn_RUC = rng.multinomial(support_U, share_C, size=(CHANCE_RESAMPLES, len(support_U)))
    other_RU, own_RU = (drawn_RUC[..., right].sum(axis=-1) / support_U for right in ([2, 3], [1, 3]))
    means = mean_by_third(other_RU, own_RU)
    return means["easy"] - means["hard"]
