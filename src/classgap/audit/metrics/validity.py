"""Metrics as valid: a prediction is correct if it is one of the sample's valid labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from classgap.audit._types import Floats, Integers
from classgap.audit.io.label_sets import LabelSets
from classgap.audit.metrics.accuracy import ClassCounts, top_k_accuracy
from classgap.audit.metrics.calibration import calibration_errors
from classgap.audit.metrics.gaps import compute_gap, difference_interval, mean_interval
from classgap.audit.metrics.groups import Grouping
from classgap.audit.metrics.groups import thirds as rank_thirds
from classgap.audit.results import Gap, Interval
from classgap.audit.settings import AuditSettings
from classgap.audit.stats.intervals import agresti_min_bounds, resample_accuracies, wilson_bounds, wilson_interval
from classgap.audit.stats.pairing import count_outcomes
from classgap.audit.valid_results import ValidClass, ValidGroup, ValidOverall, ValidResult

Booleans = NDArray[np.bool_]


@dataclass(frozen=True)
class Validity:
    """Which samples are judged, and how.

    Attributes:
        targets_N: label of each sample.
        predictions_N: predicted label of each sample.
        known_N: which samples have a valid label.
        right_N: which predictions are valid.
        own_N: which samples' own labels are valid.
    """

    targets_N: Integers
    predictions_N: Integers
    known_N: Booleans
    right_N: Booleans
    own_N: Booleans

    @classmethod
    def from_sets(cls, targets_N: Integers, predictions_N: Integers, sets: LabelSets) -> Validity:
        """Look predictions and labels up in the sets."""
        return cls(targets_N, predictions_N, sets.known_N, sets.contain(predictions_N), sets.contain(targets_N))

    @property
    def labeled_N(self) -> Booleans:
        """Which predictions are correct as labeled."""
        return self.targets_N == self.predictions_N

    @property
    def valid_errors_N(self) -> Booleans:
        """Errors as labeled whose prediction is valid."""
        return self.right_N & ~self.labeled_N

    def count(self, chosen_N: Booleans, num_classes: int) -> Integers:
        """Number of chosen samples of each class."""
        return np.bincount(self.targets_N[chosen_N], minlength=num_classes)


def valid_result(
    validity: Validity,
    names: tuple[str, ...],
    groupings: Sequence[Grouping],
    labeled: Gap,
    settings: AuditSettings,
    *,
    ranking_K: Floats,
    ranking_right_N: Booleans | None,
    rank_N: Integers | None = None,
    confidence_N: Floats | None = None,
) -> ValidResult:
    """Compute the metrics as valid.

    Args:
        validity: samples.
        names: class names.
        groupings: groups of the audit.
        labeled: gap of the audit.
        settings: settings of the audit.
        ranking_K: numbers that rank the thirds of the audit.
        ranking_right_N: which samples the ranking counts as correct, if known.
        rank_N: rank of each sample's best valid label among its scores.
        confidence_N: probability of each sample's predicted label.
    """
    level, classes = settings.confidence_level, len(names)
    support_K, correct_K = validity.count(validity.known_N, classes), validity.count(validity.right_N, classes)
    predicted_K = np.bincount(validity.predictions_N[validity.known_N], minlength=classes)
    counts = ClassCounts(support_K, correct_K, predicted_K)
    own = ClassCounts(support_K, validity.count(validity.own_N, classes), support_K)
    rng = np.random.default_rng(settings.seed)
    accuracies = _Bootstrap.from_counts(counts, settings, rng)
    own_labels = _Bootstrap.from_counts(own, settings, rng)
    left_out_K = validity.count(~validity.known_N, classes)
    gap = _gap(validity, counts, accuracies, names, settings, ranking_K, ranking_right_N, rng)
    reranked, reranked_interval = accuracies.gap(rank_thirds(counts.accuracy_K, counts.seen_K))
    thirds = {group.name: group.members for group in groupings if group.kind == "thirds"}
    change = change_interval = None
    # The thirds of the audit, which stay the same if all samples of a class are left out.
    difference, interval = accuracies.gap(thirds)
    others = {name: found for name, found in gap.intervals.items() if name != "easy_hard"}
    gap = replace(gap, easy_hard=difference, intervals=others if interval is None else others | {"easy_hard": interval})
    if gap.easy_hard is not None and labeled.easy_hard is not None:
        change = gap.easy_hard - labeled.easy_hard
        change_interval = _change_interval(validity, thirds, change, level)
    return ValidResult(
        overall=_overall(validity, counts, own, accuracies, settings, rank_N, confidence_N),
        groups={
            group.name: ValidGroup(
                name=group.name,
                support=int(support_K[group.members].sum()),
                left_out=int(left_out_K[group.members].sum()),
                accuracy=accuracies.mean(group.members),
                interval=accuracies.interval(group.members),
                label_validity=own_labels.mean(group.members),
                label_validity_interval=own_labels.interval(group.members),
            )
            for group in groupings
        },
        gap=gap,
        gap_change=change,
        gap_change_interval=change_interval,
        reranked_easy_hard=reranked,
        reranked_interval=reranked_interval,
        classes=_classes(names, counts, own, left_out_K, validity.count(validity.valid_errors_N, classes), level),
    )


@dataclass(frozen=True)
class _Bootstrap:
    """Counts of the classes that have samples, with resampled accuracies."""

    seen_U: Integers
    correct_U: Integers
    support_U: Integers
    replicates_RU: Floats
    level: float

    @classmethod
    def from_counts(cls, counts: ClassCounts, settings: AuditSettings, rng: np.random.Generator) -> _Bootstrap:
        seen_U = np.flatnonzero(counts.seen_K)
        correct_U, support_U = counts.correct_K[seen_U], counts.support_K[seen_U]
        replicates_RU = resample_accuracies(correct_U, support_U, settings.n_resamples, rng)
        return cls(seen_U, correct_U, support_U, replicates_RU, settings.confidence_level)

    def columns(self, members: Integers) -> Integers:
        """Positions of those members that have samples."""
        return np.flatnonzero(np.isin(self.seen_U, members))

    def mean(self, members: Integers) -> float | None:
        columns = self.columns(members)
        return float((self.correct_U[columns] / self.support_U[columns]).mean()) if len(columns) else None

    def interval(self, members: Integers) -> Interval | None:
        columns = self.columns(members)
        if not len(columns):
            return None
        return mean_interval(self.replicates_RU, columns, self.correct_U, self.support_U, self.level)

    def gap(self, thirds: Mapping[str, Integers]) -> tuple[float | None, Interval | None]:
        """Mean of the easy third minus mean of the hard third, and its interval."""
        easy, hard = (self.columns(thirds.get(name, np.empty(0, dtype=np.int64))) for name in ("easy", "hard"))
        if not len(easy) or not len(hard):
            return None, None
        accuracy_U = self.correct_U / self.support_U
        interval = difference_interval(self.replicates_RU, easy, hard, self.correct_U, self.support_U, self.level)
        return float(accuracy_U[easy].mean() - accuracy_U[hard].mean()), interval


def _overall(
    validity: Validity,
    counts: ClassCounts,
    own: ClassCounts,
    accuracies: _Bootstrap,
    settings: AuditSettings,
    rank_N: Integers | None,
    confidence_N: Floats | None,
) -> ValidOverall:
    n, level, known_N = int(counts.support_K.sum()), settings.confidence_level, validity.known_N
    top_k, calibration = {1: counts.accuracy}, None
    if rank_N is not None:
        top_k = top_k_accuracy(rank_N[known_N], settings.top_k, len(counts.support_K))
    if confidence_N is not None:
        one_group_N = np.zeros(n, dtype=np.int64)
        calibration = float(calibration_errors(confidence_N[known_N], validity.right_N[known_N], one_group_N, 1)[0])
    balanced = accuracies.interval(accuracies.seen_U)
    assert balanced is not None
    return ValidOverall(
        n_samples=n,
        left_out=len(validity.targets_N) - n,
        accuracy=counts.accuracy,
        interval=wilson_interval(int(counts.correct_K.sum()), n, level),
        balanced_accuracy=counts.balanced_accuracy,
        balanced_interval=balanced,
        label_validity=own.accuracy,
        label_validity_interval=wilson_interval(int(own.correct_K.sum()), n, level),
        valid_errors=int(validity.valid_errors_N.sum()),
        top_k=top_k,
        calibration_error=calibration,
    )


def _gap(
    validity: Validity,
    counts: ClassCounts,
    accuracies: _Bootstrap,
    names: tuple[str, ...],
    settings: AuditSettings,
    ranking_K: Floats,
    ranking_right_N: Booleans | None,
    rng: np.random.Generator,
) -> Gap:
    shared_KBA = None
    if ranking_right_N is not None:
        known_N = validity.known_N
        shared_KBA = count_outcomes(
            validity.targets_N[known_N], ranking_right_N[known_N], validity.right_N[known_N], classes=len(names)
        )
    return compute_gap(
        counts,
        accuracies.replicates_RU,
        names,
        ranking_K=ranking_K,
        shared_KBA=shared_KBA,
        confidence_level=settings.confidence_level,
        rng=rng,
    )


def _change_interval(validity: Validity, thirds: dict[str, Integers], change: float, level: float) -> Interval:
    """Normal interval of the change of the gap, from the same samples judged both ways.

    The change of class k is v_k - a_k: a_k is the mean of its correct samples as labeled, v_k the mean as valid over
    the fraction q_k of samples that have a valid label. A sample with outcomes a and v contributes
    (v - v_k) / q_k if it has a valid label, else 0, minus a - a_k; the variance of v_k - a_k is that of the mean of
    these contributions. If that is 0, the Agresti-Min intervals of both thirds are combined instead.
    """
    targets_N, known_N = validity.targets_N, validity.known_N
    n_K = np.bincount(targets_N)
    size = len(n_K)  # thirds contain only classes with samples
    known_K = validity.count(known_N, size)
    labeled_K = validity.count(validity.labeled_N, size) / np.maximum(n_K, 1)
    valid_K = validity.count(validity.right_N, size) / np.maximum(known_K, 1)
    scale_K = n_K / np.maximum(known_K, 1)
    part_N = np.where(known_N, (validity.right_N - valid_K[targets_N]) * scale_K[targets_N], 0.0)
    part_N -= validity.labeled_N - labeled_K[targets_N]
    squares_K = np.bincount(targets_N, weights=part_N**2, minlength=size)
    variance_K = squares_K / np.maximum(n_K, 1) / np.maximum(n_K - 1, 1)
    variance = 0.0
    for name in ("easy", "hard"):
        members = thirds[name][known_K[thirds[name]] > 0]
        variance += float(variance_K[members].sum()) / max(len(members), 1) ** 2
    if variance == 0:
        return _agresti_min_change(validity, thirds, change, level)
    half = NormalDist().inv_cdf((1 + level) / 2) * variance**0.5
    return Interval(change - half, change + half)


def _agresti_min_change(validity: Validity, thirds: dict[str, Integers], change: float, level: float) -> Interval:
    """Combine the intervals of the changes of both thirds, each over its pooled samples, as Newcombe's method does."""
    ends = []
    for name in ("easy", "hard"):
        rows = validity.known_N & np.isin(validity.targets_N, thirds[name])
        moves = validity.right_N[rows].astype(np.int64) - validity.labeled_N[rows]
        sums = np.array([moves.sum()], dtype=np.float64), np.array([(moves**2).sum()], dtype=np.float64)
        low, high = agresti_min_bounds(*sums, np.array([len(moves)]), level)
        ends.append((float(moves.mean() - low[0]), float(high[0] - moves.mean())))
    (easy_below, easy_above), (hard_below, hard_above) = ends
    return Interval(change - float(np.hypot(easy_below, hard_above)), change + float(np.hypot(easy_above, hard_below)))


def _classes(
    names: tuple[str, ...],
    counts: ClassCounts,
    own: ClassCounts,
    left_out_K: Integers,
    valid_errors_K: Integers,
    level: float,
) -> tuple[ValidClass, ...]:
    right, labels = (
        np.stack([part.accuracy_K, *wilson_bounds(part.correct_K, part.support_K, level)], axis=1).tolist()
        for part in (counts, own)
    )
    seen = counts.seen_K.tolist()
    return tuple(
        ValidClass(
            name=name,
            accuracy=right[k][0] if seen[k] else None,
            interval=Interval(*right[k][1:]) if seen[k] else None,
            support=int(counts.support_K[k]),
            left_out=int(left_out_K[k]),
            label_validity=labels[k][0] if seen[k] else None,
            label_validity_interval=Interval(*labels[k][1:]) if seen[k] else None,
            valid_errors=int(valid_errors_K[k]),
        )
        for k, name in enumerate(names)
    )
