"""Accuracy, precision and top-k accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from classgap.audit._types import Floats, Integers


@dataclass(frozen=True)
class ClassCounts:
    """Counts of samples, correct predictions and predictions of each class.

    >>> counts = ClassCounts.from_labels(np.array([0, 0, 1]), np.array([0, 1, 1]), num_classes=3)
    >>> counts.accuracy_K.tolist(), counts.precision_K.tolist(), counts.balanced_accuracy
    ([0.5, 1.0, nan], [1.0, 0.5, nan], 0.75)
    """

    support_K: Integers
    correct_K: Integers
    predicted_K: Integers

    @classmethod
    def from_labels(cls, targets_N: Integers, predictions_N: Integers, num_classes: int) -> ClassCounts:
        """Count the samples of each class."""
        correct = targets_N[targets_N == predictions_N]
        return cls(
            support_K=np.bincount(targets_N, minlength=num_classes),
            correct_K=np.bincount(correct, minlength=num_classes),
            predicted_K=np.bincount(predictions_N, minlength=num_classes),
        )

    @property
    def seen_K(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Whether each class has test samples."""
        return self.support_K > 0

    @property
    def accuracy_K(self) -> Floats:
        """Correct samples / samples of each class; NaN for unseen classes."""
        return _ratio(self.correct_K, self.support_K)

    @property
    def precision_K(self) -> Floats:
        """Correct samples / predictions of each class; NaN for classes that are never predicted."""
        return _ratio(self.correct_K, self.predicted_K)

    @property
    def f1_K(self) -> Floats:
        """F1 score of each class, 2 · correct / (support + predicted); NaN for unseen classes."""
        return np.where(self.seen_K, _ratio(2 * self.correct_K, self.support_K + self.predicted_K), np.nan)

    @property
    def macro_f1(self) -> float:
        """Mean F1 score of the seen classes."""
        return float(self.f1_K[self.seen_K].mean())

    @property
    def accuracy(self) -> float:
        """Fraction of correct samples."""
        return float(self.correct_K.sum() / self.support_K.sum())

    @property
    def balanced_accuracy(self) -> float:
        """Mean accuracy of the seen classes."""
        return float(self.accuracy_K[self.seen_K].mean())


def top_k_accuracy(rank_N: Integers, ks: Sequence[int], num_classes: int) -> dict[int, float]:
    """Fraction of samples whose true class is among the k highest scores, for each k that is 1 or below K.

    >>> top_k_accuracy(np.array([0, 1, 4, 0]), [1, 2, 5], num_classes=5)
    {1: 0.5, 2: 0.75}
    """
    return {k: float((rank_N < k).mean()) for k in ks if k == 1 or k < num_classes}


def _ratio(part: Integers, whole: Integers) -> Floats:
    return np.where(whole > 0, part / np.maximum(whole, 1), np.nan)
