"""Measurements of each class from which its causes are determined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from classgap.audit._types import Floats, Integers
from classgap.audit.diagnosis.loss_trend import LossTrend
from classgap.audit.results import Confusion

CHANGE_P = 0.05  # of the sign test


@dataclass(frozen=True)
class Evidence:
    """Inputs of the causes, per class: NaN where unknown, ``None`` where not given.

    Attributes:
        names: class names.
        support_K: number of test samples.
        correct_K: number of correct test samples.
        confusions: confusions of each class, most frequent first.
        confused_back: for each class, how often its most frequent confusion is predicted as it.
        train_counts_K: number of training samples.
        tail_below: classes with fewer training samples belong to the tail.
        spread_K: ‖ŝ_k‖.
        nearest_Km: classes with the nearest mean features.
        train_accuracy_K: accuracy on the training set.
        train_support_K: number of training samples behind ``train_accuracy_K``.
        loss_trend: training loss at the end of the run.
        doubted_K: errors whose label is in doubt.
        fixed_K: change → errors of each class that it removes, whatever else removes them.
        broken_K: change → correct predictions of each class that it breaks.
        lost_K: errors that neither a head nor nearest neighbors remove.
        confidence_level: level of the intervals.
        valid_K: errors whose prediction is one of the sample's valid labels.
        examined_support_K: number of samples in which errors were assigned to changes; by default all.
        examined_errors_K: number of errors among them.
        has_head: whether the model is a given linear head on the features, so that a refitted head is the same model.
    """

    names: Sequence[str]
    support_K: Integers
    correct_K: Integers
    confusions: Sequence[tuple[Confusion, ...]]
    confused_back: Sequence[int]
    train_counts_K: Floats | None
    tail_below: float
    spread_K: Floats | None
    nearest_Km: Integers | None
    train_accuracy_K: Floats | None
    train_support_K: Integers | None
    loss_trend: LossTrend | None
    doubted_K: Integers | None
    fixed_K: dict[str, Integers]
    broken_K: dict[str, Integers]
    lost_K: Integers | None
    confidence_level: float
    valid_K: Integers | None = None
    examined_support_K: Integers | None = None
    examined_errors_K: Integers | None = None
    has_head: bool = True

    @property
    def accuracy_K(self) -> Floats:
        """Test accuracy, NaN for unseen classes."""
        return np.where(self.support_K > 0, self.correct_K / np.maximum(self.support_K, 1), np.nan)

    @property
    def accurate_K(self) -> NDArray[np.bool_]:
        """Which classes have at least the mean accuracy."""
        return self.accuracy_K >= np.nanmean(self.accuracy_K)

    def errors(self, k: int) -> int:
        """Number of errors of a class."""
        return int(self.support_K[k] - self.correct_K[k])

    @property
    def examined_K(self) -> Integers:
        """Number of samples of each class in which errors were assigned to changes."""
        return self.support_K if self.examined_support_K is None else self.examined_support_K

    @property
    def wrong_K(self) -> Integers:
        """Number of errors of each class among them."""
        return self.support_K - self.correct_K if self.examined_errors_K is None else self.examined_errors_K

    def net(self, change: str, k: int) -> int:
        """Errors of a class that a change removes, minus the correct predictions that it breaks."""
        return int(self.fixed_K[change][k] - self.broken_K[change][k]) if change in self.fixed_K else 0

    def improves(self, change: str, k: int) -> bool:
        """Whether a change improves a class significantly (exact sign test)."""
        if change not in self.fixed_K:
            return False
        from scipy.stats import binomtest

        fixed, broken = int(self.fixed_K[change][k]), int(self.broken_K[change][k])
        return fixed > broken and binomtest(fixed, fixed + broken).pvalue < CHANGE_P
