"""F1 scores on the two sides of a comparison, and the interval of the change of their mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from classgap.audit._types import Floats, Integers
from classgap.audit.audit import Audit
from classgap.audit.diff_results import Change
from classgap.audit.metrics.accuracy import ClassCounts
from classgap.audit.results import Interval
from classgap.audit.stats.matching import ClassMatch, MatchedSamples, class_positions
from classgap.audit.stats.paired_tests import paired_t_test


@dataclass(frozen=True)
class F1Side:
    """F1 scores of one side.

    Attributes:
        targets_N: class of each sample, 0 … U-1.
        f1_SU: F1 score of each run and class.
        influence_N: derivative of macro F1 with respect to the weight of each sample, given the samples per class;
            mean over runs.

    >>> side = F1Side.from_labels(np.array([0, 0, 1, 1]), np.array([[0, 1, 1, 1]]), num_classes=2)
    >>> side.f1_SU.round(3).tolist(), side.influence_N.round(3).tolist()
    ([[0.667, 0.8]], [0.222, -0.08, 0.12, 0.12])
    """

    targets_N: Integers
    f1_SU: Floats
    influence_N: Floats

    @classmethod
    def from_labels(cls, targets_N: Integers, predictions_SN: Integers, num_classes: int) -> F1Side:
        """Compute F1_k = 2 correct_k / (support_k + predicted_k) of each run.

        Its derivatives are 2 / (support_k + predicted_k) for a correct sample, and -F1_k / (support_k + predicted_k)
        for a sample predicted as class k.

        Args:
            targets_N: class of each sample; every class has samples.
            predictions_SN: predicted classes of each run; -1 for any other class.
            num_classes: number of classes U.
        """
        f1, influence_N = [], np.zeros(len(targets_N))
        for predictions_N in predictions_SN:
            known_N = predictions_N >= 0
            counts = ClassCounts(
                support_K=np.bincount(targets_N, minlength=num_classes),
                correct_K=np.bincount(targets_N[predictions_N == targets_N], minlength=num_classes),
                predicted_K=np.bincount(predictions_N[known_N], minlength=num_classes),
            )
            total_U = counts.support_K + counts.predicted_K
            influence_N += np.where(predictions_N == targets_N, 2 / total_U[targets_N], 0.0)
            influence_N -= np.where(known_N, (counts.f1_K / total_U)[predictions_N], 0.0)
            f1.append(counts.f1_K)
        return cls(targets_N, np.stack(f1), influence_N / (num_classes * len(f1)))

    @property
    def f1_U(self) -> Floats:
        """F1 score of each class, mean over runs."""
        return self.f1_SU.mean(axis=0)


@dataclass(frozen=True)
class F1Sides:
    """F1 scores before and after, for the classes with samples on both sides.

    Attributes:
        before: first side.
        after: second side.
        paired: whether both sides have the same samples, in the same order.
    """

    before: F1Side
    after: F1Side
    paired: bool

    @classmethod
    def from_samples(cls, matched: MatchedSamples) -> F1Sides:
        """Compute the scores of matched samples."""
        num_classes = len(matched.classes.names)
        seen = np.flatnonzero(np.bincount(matched.targets_N, minlength=num_classes))
        to_seen = _renumber(seen, num_classes)
        before, after = (
            F1Side.from_labels(to_seen[matched.targets_N], to_seen[predictions_SN], len(seen))
            for predictions_SN in (matched.before_predictions_SN, matched.after_predictions_SN)
        )
        return cls(before, after, paired=True)

    @classmethod
    def from_audits(cls, before: Audit, after: Audit, classes: ClassMatch, names: Sequence[str]) -> F1Sides | None:
        """Compute the scores of two test sets; ``None`` if an audit has no samples.

        Args:
            before: audit of the first side.
            after: audit of the second side.
            classes: matched classes.
            names: those that have samples on both sides.
        """
        if not (before.has_samples and after.has_samples):
            return None
        position = {name: i for i, name in enumerate(classes.names)}
        to_seen = _renumber(np.array([position[name] for name in names]), len(classes.names))
        sides = []
        for audit, first in ((before, True), (after, False)):
            targets_N = to_seen[class_positions(audit, classes, first_side=first)]
            predictions_N = to_seen[class_positions(audit, classes, first_side=first, predicted=True)]
            kept = targets_N >= 0
            sides.append(F1Side.from_labels(targets_N[kept], predictions_N[kept][None], len(names)))
        return cls(sides[0], sides[1], paired=False)

    def macro_change(self, confidence_level: float) -> Change:
        """Change of macro F1, with a normal interval whose variance is that of the influences within each class."""
        from scipy.special import ndtri

        before_S, after_S = self.before.f1_SU.mean(axis=1), self.after.f1_SU.mean(axis=1)
        start, end = float(before_S.mean()), float(after_S.mean())
        if self.paired:
            variance = stratified_variance(self.after.influence_N - self.before.influence_N, self.after.targets_N)
        else:
            variance = sum(stratified_variance(side.influence_N, side.targets_N) for side in (self.before, self.after))
        reach = float(ndtri((1 + confidence_level) / 2)) * variance**0.5
        p = paired_t_test(after_S - before_S)
        return Change(
            before=start,
            after=end,
            change=end - start,
            interval=Interval(max(end - start - reach, -1.0), min(end - start + reach, 1.0)),
            runs_agree=p is None or p < 1 - confidence_level,
        )


def stratified_variance(influence_N: Floats, targets_N: Integers) -> float:
    """Variance of Σ influence if the samples of each class are drawn independently.

    A class of one sample has no variance of its own; it gets the mean of the others, or that of all samples.

    >>> round(stratified_variance(np.array([0.0, 1.0, 0.0, 1.0]), np.array([0, 0, 1, 1])), 3)
    2.0
    """
    support_U = np.bincount(targets_N)
    mean_U = np.bincount(targets_N, weights=influence_N) / np.maximum(support_U, 1)
    squares_U = np.bincount(targets_N, weights=(influence_N - mean_U[targets_N]) ** 2)
    freedom_U = np.maximum(support_U - 1, 0)
    pooled = squares_U.sum() / freedom_U.sum() if freedom_U.any() else influence_N.var()
    variance_U = np.where(freedom_U > 0, squares_U / np.maximum(freedom_U, 1), pooled)
    return float((support_U * variance_U).sum())


def _renumber(kept: Integers, total: int) -> Integers:
    """Return old position → new position, -1 for positions not in ``kept``; -1 stays -1."""
    found = np.full(total + 1, -1)
    found[kept] = np.arange(len(kept))
    return found
