"""Samples sorted by class, and statistics within each class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from classgap.audit._types import Floats, Integers
from classgap.audit.results import QUANTILE_LEVELS, Distribution


@dataclass(frozen=True)
class ClassOrder:
    """Sample positions sorted by class.

    Attributes:
        order_N: positions of the samples, class by class.
        support_K: number of samples of each class.
        seen_U: classes with samples.

    >>> order = ClassOrder.from_labels(np.array([1, 0, 1]), num_classes=3)
    >>> order.support_K.tolist(), order.seen_U.tolist(), order.mean(np.array([1.0, 5.0, 3.0])).tolist()
    ([1, 2, 0], [0, 1], [5.0, 2.0, nan])
    """

    order_N: Integers
    support_K: Integers
    seen_U: Integers

    @classmethod
    def from_labels(cls, labels_N: Integers, num_classes: int) -> ClassOrder:
        """Sort samples by label."""
        support = np.bincount(labels_N, minlength=num_classes)
        small = np.min_scalar_type(len(support))  # NumPy sorts 16 bits several times faster
        return cls(np.argsort(labels_N.astype(small), kind="stable"), support, np.flatnonzero(support))

    def rows(self) -> Iterator[tuple[int, Integers]]:
        """Iterate over the seen classes and the positions of their samples."""
        ends_K = np.cumsum(self.support_K)
        for k in self.seen_U.tolist():
            yield k, self.order_N[ends_K[k] - self.support_K[k] : ends_K[k]]

    def mean(self, values_N: Floats) -> Floats:
        """Return the mean of each class, (K,); NaN for unseen classes."""
        means_K = np.full(len(self.support_K), np.nan)
        if len(self.seen_U):
            starts_U = (np.cumsum(self.support_K) - self.support_K)[self.seen_U]
            means_K[self.seen_U] = np.add.reduceat(values_N[self.order_N], starts_U) / self.support_K[self.seen_U]
        return means_K


def class_distributions(values_N: Floats, order: ClassOrder) -> list[Distribution | None]:
    """Compute mean, standard deviation and quantiles of each class; ``None`` for unseen classes.

    Quantiles are interpolated linearly.

    >>> order = ClassOrder.from_labels(np.array([0, 0, 2]), num_classes=3)
    >>> [entry and entry.median for entry in class_distributions(np.array([1.0, 2.0, 5.0]), order)]
    [1.5, None, 5.0]
    """
    found: list[Distribution | None] = [None] * len(order.support_K)
    for k, rows in order.rows():
        values = values_N[rows]
        found[k] = Distribution(float(values.mean()), float(values.std()), tuple(_quantiles(values).tolist()))
    return found


def _quantiles(values_n: Floats) -> Floats:
    """The same as ``np.quantile``, which takes longer than sorting the samples of a class."""
    sorted_n = np.sort(values_n)
    place = np.asarray(QUANTILE_LEVELS) * (len(values_n) - 1)
    below = np.floor(place).astype(np.int64)
    low, high = sorted_n[below], sorted_n[np.minimum(below + 1, len(values_n) - 1)]
    weight, step = place - below, high - low
    return np.where(weight < 0.5, low + step * weight, high - step * (1 - weight))
