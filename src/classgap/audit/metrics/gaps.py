"""Accuracy gaps between classes. Each measure reduces the last axis of accuracies (…, U) of the seen classes."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

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

CHANCE_RESAMPLES = 200  # a mean needs fewer resamples than the ends of an interval


def gini(accuracy_U: Floats) -> Floats:
    """Gini coefficient Σ_i Σ_j |a_i - a_j| / (2 U Σ_i a_i); 0 if all accuracies are 0.

    >>> float(gini(np.array([1.0, 0.0])))
    0.5
    """
    size = accuracy_U.shape[-1]
    ordered = np.sort(accuracy_U, axis=-1)
    weights = 2 * np.arange(1, size + 1) - size - 1  # |a_i - a_j| summed over pairs, by rank
    total = ordered.sum(axis=-1)
    return (ordered @ weights) / (size * np.where(total > 0, total, 1))


def worst_tenth(accuracy_U: Floats) -> Floats:
    """Mean of the lowest ⌈U/10⌉ accuracies.

    >>> float(worst_tenth(np.arange(20.0)))
    0.5
    """
    count = tenth_size(accuracy_U.shape[-1])
    return np.partition(accuracy_U, count - 1, axis=-1)[..., :count].mean(axis=-1)


def tenth_size(classes: int) -> int:
    """Number of classes in the worst tenth.

    >>> tenth_size(10), tenth_size(11)
    (1, 2)
    """
    return math.ceil(classes / 10)


def easy_hard(accuracy_U: Floats) -> Floats:
    """Mean of the easy third minus mean of the hard third, ranked by these accuracies (see ``groups.thirds``).

    >>> float(easy_hard(np.array([0.9, 0.1, 0.5])))
    0.8
    """
    ordered = np.sort(accuracy_U, axis=-1)
    size = accuracy_U.shape[-1]
    outer = size // 3 + (size % 3 == 2)
    return ordered[..., size - outer :].mean(axis=-1) - ordered[..., :outer].mean(axis=-1)


def best_worst(accuracy_U: Floats) -> Floats:
    """Highest minus lowest accuracy."""
    return accuracy_U.max(axis=-1) - accuracy_U.min(axis=-1)


def worst_class(accuracy_U: Floats) -> Floats:
    """Lowest accuracy."""
    return accuracy_U.min(axis=-1)


def std(accuracy_U: Floats) -> Floats:
    """Population standard deviation over classes."""
    return accuracy_U.std(axis=-1)


MEASURES: dict[str, Callable[[Floats], Floats]] = {
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
    """Compute all measures with their intervals.

    Intervals keep the selected classes fixed (easy and hard, best and worst): they are intervals for the difference
    between *these* classes. ``expected_by_chance`` accounts for selecting them by accuracy.

    Args:
        counts: counts of this model.
        replicates_RU: resampled accuracies of the seen classes.
        names: names of all classes.
        ranking_K: scores that rank the thirds instead of this model's accuracies.
        shared_KBA: if ``ranking_K`` is another model's accuracies on the same samples, how many samples of each class
            are wrong (0) or right (1) for that model (B) and for this one (A).
        confidence_level: level of the intervals.
        rng: draws the resamples of ``expected_by_chance``.
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
    difference = None
    if len(seen_U) > 1:
        parts = thirds(
            (counts.accuracy_K if ranking_K is None else ranking_K)[seen_U], np.ones(len(seen_U), dtype=bool)
        )
        easy, hard = parts["easy"], parts["hard"]
        difference = float(accuracy_U[easy].mean() - accuracy_U[hard].mean())
        intervals["easy_hard"] = difference_interval(replicates_RU, easy, hard, correct_U, support_U, confidence_level)
    return Gap(
        easy_hard=difference,
        best_worst=values["best_worst"],
        worst_class=values["worst_class"],
        worst_tenth=values["worst_tenth"],
        std=values["std"],
        gini=values["gini"],
        intervals=intervals,
        expected_by_chance=_expected_by_chance(counts, ranking_K, shared_KBA, rng),
        worst_name=names[seen_U[worst]],
        best_name=names[seen_U[best]],
    )


def mean_interval(
    replicates_RU: Floats, members_U: Integers, correct_U: Integers, support_U: Integers, confidence_level: float
) -> Interval:
    """Bootstrap interval of the mean accuracy of some classes.

    If all of their samples are right, or all are wrong, the bootstrap interval has zero width. The Wilson interval of
    the pooled samples is returned instead.
    """
    right, total = int(correct_U[members_U].sum()), int(support_U[members_U].sum())
    if right in (0, total):
        return wilson_interval(right, total, confidence_level)
    return percentile_interval(replicates_RU[:, members_U].mean(axis=1), confidence_level, within=(0.0, 1.0))


def difference_interval(
    replicates_RU: Floats,
    first_U: Integers,
    second_U: Integers,
    correct_U: Integers,
    support_U: Integers,
    confidence_level: float,
) -> Interval:
    """Bootstrap interval of the difference of two mean accuracies; Newcombe's where that would have zero width."""
    pooled = [(int(correct_U[part].sum()), int(support_U[part].sum())) for part in (first_U, second_U)]
    if all(right in (0, total) for right, total in pooled):
        return newcombe_interval(pooled[0], pooled[1], confidence_level)
    difference_R = replicates_RU[:, first_U].mean(axis=1) - replicates_RU[:, second_U].mean(axis=1)
    return percentile_interval(difference_R, confidence_level, within=(-1.0, 1.0))


def mean_by_third(ranking_RU: Floats, values_RU: Floats) -> dict[str, float]:
    """Mean of the values over each third, ranked within each resample, and over resamples.

    >>> mean_by_third(np.array([[0.9, 0.1, 0.5]]), np.array([[1.0, 2.0, 3.0]]))
    {'easy': 1.0, 'medium': 3.0, 'hard': 2.0}
    """
    return {name: float(values_RM.mean()) for name, values_RM in _by_third(ranking_RU, values_RU).items()}


def sums_by_third(ranking_RU: Floats, values_RU: Floats) -> dict[str, Floats]:
    """Sum of the values over each third, ranked within each resample, (R,) each.

    >>> {name: sums.tolist() for name, sums in sums_by_third(np.array([[0.9, 0.1]]), np.array([[1.0, 2.0]])).items()}
    {'easy': [1.0], 'hard': [2.0]}
    """
    return {name: values_RM.sum(axis=1) for name, values_RM in _by_third(ranking_RU, values_RU).items()}


def _by_third(ranking_RU: Floats, values_RU: Floats) -> dict[str, Floats]:
    ordered_RU = np.take_along_axis(values_RU, np.argsort(-ranking_RU, axis=1, kind="stable"), axis=1)
    classes = ordered_RU.shape[1]
    places = thirds(-np.arange(classes, dtype=np.float64), np.ones(classes, dtype=bool))
    return {name: ordered_RU[:, part] for name, part in places.items() if len(part)}


def _expected_by_chance(
    counts: ClassCounts, ranking_K: Floats | None, shared_KBA: Integers | None, rng: np.random.Generator
) -> dict[str, float]:
    """Mean of each measure if all classes were equally good; without ``easy_hard`` if its ranking is unrelated."""
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
    """Expected gap between thirds ranked by another model on the same samples, if all classes were equally good.

    Two models fail on similar samples. A class that has many of them by chance is ranked hard by one model and has a
    low accuracy for the other.
    """
    share_C = (shared_UBA.reshape(len(support_U), 4) / support_U[:, None]).mean(axis=0)
    drawn_RUC = rng.multinomial(support_U, share_C, size=(CHANCE_RESAMPLES, len(support_U)))
    other_RU, own_RU = (drawn_RUC[..., right].sum(axis=-1) / support_U for right in ([2, 3], [1, 3]))
    means = mean_by_third(other_RU, own_RU)
    return means["easy"] - means["hard"]
