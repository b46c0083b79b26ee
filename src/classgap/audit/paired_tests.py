"""Tests for two classifiers on the same samples."""

from __future__ import annotations

import numpy as np

from classgap.audit.intervals import Floats
from classgap.audit.samples import Integers


def exact_mcnemar(fixed: Integers, broken: Integers) -> Floats:
    """Two-sided p-value that as many samples were fixed as broken, elementwise; 1 where none changed.

    Given the n samples that changed, the number fixed has the distribution Binomial(n, ½) if nothing is behind it.

    >>> exact_mcnemar(np.array([5, 0]), np.array([0, 0])).tolist()
    [0.0625, 1.0]
    """
    from scipy.special import bdtr

    fewer, changed = np.minimum(fixed, broken), fixed + broken
    return np.minimum(1.0, 2 * bdtr(fewer.astype(np.float64), changed, 0.5))


def holm(p_values: Floats) -> Floats:
    """Holm's step-down correction: p-values that keep the chance of *any* false finding at the level.

    The i-th smallest of m is multiplied by m - i + 1, and none may be smaller than the one before.

    >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    scaled = p_values[order] * np.arange(len(p_values), 0, -1)
    corrected = np.empty_like(scaled)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(scaled))
    return corrected


def paired_t(changes: Floats) -> float | None:
    """Two-sided p-value of the paired t-test that the mean change is 0; ``None`` for one change or all equal.

    >>> round(paired_t(np.array([1.0, 2.0, 3.0])), 4)
    0.0742
    """
    if len(changes) < 2 or np.ptp(changes) == 0:
        return None
    from scipy.special import stdtr

    t = changes.mean() / (changes.std(ddof=1) / np.sqrt(len(changes)))
    return float(2 * stdtr(len(changes) - 1, -abs(t)))
