"""The samples that the diagnosis examines: all, or a random part of each class in a large test set."""

from __future__ import annotations

import numpy as np

from classgap.audit._types import Integers
from classgap.audit.metrics.class_order import ClassOrder


def examined_rows(order: ClassOrder, limit: int, seed: int) -> Integers | None:
    """Return at most ``limit`` samples, the same number of each class where it has enough; ``None`` for all.

    >>> order = ClassOrder.from_labels(np.array([0, 0, 0, 0, 1]), num_classes=2)
    >>> len(examined_rows(order, 3, seed=0)), examined_rows(order, 5, seed=0) is None
    (3, True)
    """
    if len(order.order_N) <= limit:
        return None
    per_class = _largest_quota(order.support_K, limit)
    rng = np.random.default_rng(seed)
    chosen = [
        rows if len(rows) <= per_class else rng.choice(rows, per_class, replace=False) for _, rows in order.rows()
    ]
    return np.sort(np.concatenate(chosen))


def _largest_quota(support_K: Integers, limit: int) -> int:
    """The largest number m, at least 1, for which Σ_k min(n_k, m) ≤ limit."""
    low, high = 1, int(support_K.max())
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if np.minimum(support_K, middle).sum() <= limit else (low, middle - 1)
    return low
