"""Expected calibration error."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from classgap.audit._types import Floats, Integers

BINS = 15


def calibration_errors(
    confidence_N: Floats, correct_N: NDArray[np.bool_], group_N: Integers, num_groups: int, bins: int = BINS
) -> Floats:
    """Compute the expected calibration error of each group of samples; NaN for empty groups.

    Σ_b (n_b / n) |accuracy of bin b - mean confidence of bin b|, with B bins ((b-1)/B, b/B] of equal width.

    >>> calibration_errors(np.array([0.9, 0.9]), np.array([True, False]), np.array([0, 0]), 1).round(3).tolist()
    [0.4]
    """
    bin_N = np.clip(np.ceil(confidence_N * bins).astype(np.int64) - 1, 0, bins - 1)
    cell_N = group_N * bins + bin_N
    # |Σ correct - Σ confidence| of a bin is n_b |accuracy - mean confidence|.
    surplus = np.bincount(cell_N, weights=correct_N - confidence_N, minlength=num_groups * bins)
    size = np.bincount(group_N, minlength=num_groups)
    error = np.abs(surplus).reshape(num_groups, bins).sum(axis=1)
    return np.where(size > 0, error / np.maximum(size, 1), np.nan)
