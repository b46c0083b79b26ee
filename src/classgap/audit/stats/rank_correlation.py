"""Spearman's rank correlation over classes."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from classgap.audit._types import Floats
from classgap.audit.results import Correlation
from classgap.audit.stats.paired_tests import ROUNDING

MIN_CLASSES = 3
ALL_ORDERS = 8  # up to this many classes the test enumerates all orders, at most 40,320


def rank_correlation(x_K: Floats, y_K: Floats) -> Correlation | None:
    """Spearman's ρ over classes where both values are known; ``None`` for fewer than three classes or constant values.

    The two-sided p-value comes from all permutations for up to eight classes, and from t = ρ √((n-2) / (1-ρ²)) with
    n - 2 degrees of freedom for more.

    >>> correlation = rank_correlation(np.array([1.0, 2.0, 3.0, np.nan]), np.array([3.0, 2.0, 1.0, 0.0]))
    >>> correlation.rho, round(correlation.p_value, 4), correlation.classes  # 2 of 6 orders
    (-1.0, 0.3333, 3)
    """
    known = ~(np.isnan(x_K) | np.isnan(y_K))
    x, y = x_K[known], y_K[known]
    if len(x) < MIN_CLASSES or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    from scipy.special import stdtr  # imports ten times faster than scipy.stats

    a, b = (ranks - ranks.mean() for ranks in (_ranks(x), _ranks(y)))
    rho = float(np.clip(a @ b / np.sqrt((a @ a) * (b @ b)), -1, 1))
    if 1 - abs(rho) < ROUNDING:
        rho = float(round(rho))
    if len(x) <= ALL_ORDERS:
        orders = np.array(list(permutations(range(len(x)))))
        return Correlation(rho, float((np.abs(b[orders] @ a) >= abs(a @ b) - ROUNDING).mean()), len(x))
    t = rho * np.sqrt((len(x) - 2) / max(1 - rho**2, ROUNDING))
    return Correlation(rho, float(2 * stdtr(len(x) - 2, -abs(t))), len(x))


def _ranks(values: Floats) -> Floats:
    """Return ranks, with the mean rank for ties."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[inverse]
