"""Changes of accuracy between two sets of predictions, by groups of classes that other samples rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist, fmean

import numpy as np

from classgap.audit._types import Floats, Integers
from classgap.audit.metrics.groups import thirds
from classgap.audit.results import Interval
from classgap.audit.settings import AuditSettings
from classgap.audit.stats.intervals import percentile_interval
from classgap.audit.stats.pairing import PairedCounts, count_outcomes


@dataclass(frozen=True)
class Ranking:
    """Groups of classes by the accuracy of a model on some samples.

    Attributes:
        members: "easy", "medium", "hard" → classes; "worst" → the lowest tenth of the classes, at least one.
    """

    members: Mapping[str, Integers]

    @classmethod
    def from_predictions(
        cls, predictions_N: Integers, labels_N: Integers, num_classes: int, *, among: Integers | None = None
    ) -> Ranking:
        """Rank the classes that have samples, and are labels in ``among`` if given; the others belong to no group.

        >>> labels = np.array([0, 0, 1, 1, 2, 2])
        >>> Ranking.from_predictions(np.array([0, 0, 1, 0, 0, 0]), labels, 3).members["hard"].tolist()
        [2]
        """
        accuracy_K = class_accuracies(predictions_N == labels_N, labels_N, num_classes)
        seen_K = ~np.isnan(accuracy_K)
        if among is not None:
            seen_K &= np.bincount(among, minlength=num_classes) > 0
        parts = thirds(accuracy_K, seen_K)
        lowest = np.argsort(np.where(seen_K, accuracy_K, np.inf), kind="stable")
        return cls({**parts, "worst": lowest[: max(1, int(seen_K.sum()) // 10)]})


def class_accuracies(correct_N: object, labels_N: Integers, num_classes: int) -> Floats:
    """Accuracy of each class; NaN without samples."""
    support_K = np.bincount(labels_N, minlength=num_classes)
    right_K = np.bincount(labels_N, weights=np.asarray(correct_N, dtype=np.float64), minlength=num_classes)
    return np.divide(right_K, support_K, out=np.full(num_classes, np.nan), where=support_K > 0)


def group_weights(
    labels_N: Integers, ranking: Ranking, num_classes: int, priors_K: Floats | None = None
) -> dict[str, Floats]:
    """Weight of each sample in each measure; a measure is the weighted sum of correct predictions.

    "overall" weights all samples alike, or by ``priors_K`` where given; the other measures are means of class
    accuracies. A group without samples has zero weights.
    """
    support_K = np.bincount(labels_N, minlength=num_classes)
    share_N = 1 / support_K[labels_N]
    weights = {}
    if priors_K is None:
        weights["overall"] = np.full(len(labels_N), 1 / len(labels_N))
    else:
        weights["overall"] = (priors_K / priors_K[support_K > 0].sum())[labels_N] * share_N
    weights["balanced"] = share_N / (support_K > 0).sum()
    for name, members in ranking.members.items():
        inside_K = np.zeros(num_classes)
        present = members[support_K[members] > 0]
        if len(present):
            inside_K[present] = 1 / len(present)
        weights[name] = inside_K[labels_N] * share_N
    return weights


@dataclass(frozen=True)
class Measured:
    """Value before and after, and the standard error of the change.

    Attributes:
        before: value of the predictions before.
        after: value of the predictions after.
        error: standard error of the change over samples.
        present: whether any sample counts; values are 0 otherwise.
        is_fraction: whether the value is an accuracy; costs have no upper bound.
        resampled: bootstrap interval of the change, which replaces the normal one.
    """

    before: float
    after: float
    error: float
    present: bool = field(default=True, repr=False)
    is_fraction: bool = field(default=True, repr=False)
    resampled: Interval | None = field(default=None, repr=False)

    @property
    def change(self) -> float:
        """After minus before."""
        return self.after - self.before

    def interval(self, confidence_level: float) -> Interval:
        """Interval of the change: normal, unless another was computed."""
        if self.resampled is not None:
            return self.resampled
        half = NormalDist().inv_cdf((1 + confidence_level) / 2) * self.error
        reach = 1.0 if self.is_fraction else float("inf")
        return Interval(max(-reach, self.change - half), min(reach, self.change + half))


def measure(
    before_N: Integers,
    after_N: Integers,
    labels_N: Integers,
    weights: Mapping[str, Floats],
    costs_KK: Floats | None = None,
) -> dict[str, Measured]:
    """Measure a change of predictions, with standard errors from the paired differences of the samples.

    With ``costs_KK``, "cost" is minus the mean cost, with the samples weighted as in "overall": higher is better.

    >>> weights = {"overall": np.full(4, 0.25)}
    >>> found = measure(np.array([0, 0, 0, 0]), np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1]), weights)["overall"]
    >>> found.before, found.after, found.change
    (0.5, 1.0, 0.5)
    """
    before, after = (before_N == labels_N).astype(float), (after_N == labels_N).astype(float)
    found = {name: _measure(before, after, labels_N, weight_N) for name, weight_N in weights.items()}
    if costs_KK is not None:
        before, after = -costs_KK[labels_N, before_N], -costs_KK[labels_N, after_N]
        found["cost"] = replace(_measure(before, after, labels_N, weights["overall"]), is_fraction=False)
    return found


def _measure(before_N: Floats, after_N: Floats, labels_N: Integers, weight_N: Floats) -> Measured:
    change_N = after_N - before_N
    # One pseudo-sample per class at the mean change, so that a class of one sample has a variance too.
    support_K = np.bincount(labels_N)
    mean_K = (np.bincount(labels_N, weights=change_N) + change_N.mean()) / (support_K + 1)
    variance = float((weight_N**2 * np.square(change_N - mean_K[labels_N])).sum())
    values = float(weight_N @ before_N), float(weight_N @ after_N), float(np.sqrt(variance))
    return Measured(*values, present=bool(weight_N.any()))


def resample(
    found: Mapping[str, Measured],
    before_N: Integers,
    after_N: Integers,
    labels_N: Integers,
    weights: Mapping[str, Floats],
    confidence_level: float,
    seed: int,
) -> dict[str, Measured]:
    """Return the accuracies of :func:`measure` with paired bootstrap intervals, equal to those of a comparison.

    >>> labels, after = np.repeat([0, 1], 40), np.repeat([0, 1, 0, 1], 20)
    >>> weights = {"overall": np.full(80, 1 / 80)}
    >>> found = measure(np.zeros(80, dtype=int), after, labels, weights)
    >>> found = resample(found, np.zeros(80, dtype=int), after, labels, weights, 0.95, 0)
    >>> round(found["overall"].interval(0.95).low, 2)
    -0.1
    """
    support_K = np.bincount(labels_N)
    seen = np.flatnonzero(support_K)
    right = [(each_N == labels_N).astype(np.int64) for each_N in (before_N, after_N)]
    accuracies = [np.bincount(labels_N, weights=each_N)[None, seen] / support_K[seen] for each_N in right]
    cells_KBA = count_outcomes(labels_N, *right, classes=len(support_K))
    counts = PairedCounts(tuple(map(str, seen)), cells_KBA[seen], accuracies[0], accuracies[1])
    before_RU, after_RU = counts.resample(AuditSettings.n_resamples, np.random.default_rng(seed))
    resampled = {}
    for name, weight_N in weights.items():
        if found[name].present:
            weight_U = np.bincount(labels_N, weights=weight_N)[seen]
            interval = percentile_interval((after_RU - before_RU) @ weight_U, confidence_level, within=(-1.0, 1.0))
            resampled[name] = replace(found[name], resampled=interval)
    return resampled


def average(parts: Sequence[Mapping[str, Measured]], n_repeats: int = 1) -> dict[str, Measured]:
    """Average over folds and repeats; repeats use the same samples again, so they do not reduce the standard error.

    Each measure is averaged over the folds that have samples of its classes.

    >>> average([{"hard": Measured(0.5, 0.75, 0.03)}, {"hard": Measured(0.5, 0.25, 0.04)}])["hard"]
    Measured(before=0.5, after=0.5, error=0.025)
    """
    return {name: _average([part[name] for part in parts if part[name].present], n_repeats) for name in parts[0]}


def _average(parts: Sequence[Measured], n_repeats: int) -> Measured:
    if not parts:
        return Measured(0.0, 0.0, 0.0, present=False)
    n_folds = len(parts) / n_repeats
    return Measured(
        fmean(part.before for part in parts),
        fmean(part.after for part in parts),
        float(np.sqrt(sum(part.error**2 for part in parts) / n_repeats) / n_folds),
        is_fraction=parts[0].is_fraction,
    )
