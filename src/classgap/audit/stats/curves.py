"""Curves of values for charts: densities, cumulative distributions, and means of groups of classes by epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from classgap.audit._types import Floats

GRID = 240  # points of a density
REACH = 3.0  # bandwidths beyond the smallest and largest value
BLOCK_ELEMENTS = 2**22  # kernels in memory at once


def density(
    values: Sequence[float] | Floats, points: Floats | None = None, *, lower: float | None = None
) -> tuple[Floats, Floats]:
    """Estimate a density with Gaussian kernels and Silverman's bandwidth; return the points and the density at each.

    The bandwidth is 0.9 min(deviation, interquartile range / 1.34) n^{-1/5}, and at least a thousandth of the largest
    magnitude, so that equal values give a narrow peak.

    Args:
        values: finite values, at least one.
        points: where to evaluate; by default evenly spaced from below the smallest to above the largest value.
        lower: smallest possible value, for example 0 for distances: the part of the density below it is reflected.

    >>> x, y = density([0.0, 1.0, 2.0])
    >>> float(np.round(y.sum() * (x[1] - x[0]), 2))
    1.0
    """
    values_N = check_values(values)
    quartiles = np.quantile(values_N, [0.25, 0.75])
    widths = [values_N.std(ddof=1) if len(values_N) > 1 else 0.0, (quartiles[1] - quartiles[0]) / 1.34]
    scale = min((width for width in widths if width > 0), default=0.0)
    bandwidth = max(0.9 * scale * len(values_N) ** -0.2, 1e-3 * max(np.abs(values_N).max(), 1e-9))
    if lower is not None and values_N.min() < lower:
        raise ValueError(f"values must be at least lower, {lower:g}, got {values_N.min():g}.")
    if points is None:
        first, last = values_N.min() - REACH * bandwidth, values_N.max() + REACH * bandwidth
        points = np.linspace(first if lower is None else max(first, lower), last, GRID)
    total_P, block = np.zeros(len(points)), max(1, BLOCK_ELEMENTS // len(points))
    for start in range(0, len(values_N), block):
        some_B = values_N[start : start + block]
        for centers_B in (some_B,) if lower is None else (some_B, 2 * lower - some_B):
            total_P += np.exp(-0.5 * ((points[:, None] - centers_B) / bandwidth) ** 2).sum(axis=1)
    density_P = total_P / (len(values_N) * bandwidth * np.sqrt(2 * np.pi))
    return points, density_P if lower is None else np.where(points < lower, 0.0, density_P)


def ecdf(values: Sequence[float] | Floats) -> tuple[Floats, Floats]:
    """Return the distinct values in ascending order and the fraction of values up to each.

    >>> ecdf([2.0, 1.0, 2.0])
    (array([1., 2.]), array([0.33333333, 1.        ]))
    """
    values_N = check_values(values)
    distinct, counts = np.unique(values_N, return_counts=True)
    return distinct, np.cumsum(counts) / len(values_N)


def group_means(
    values: Sequence[Sequence[float | None]] | Floats, groups: Mapping[str, Sequence[int]]
) -> dict[str, Floats]:
    """Average values per epoch and class over groups of classes, for example the thirds; NaN without known values.

    Args:
        values: one row per epoch with one entry per class; ``None`` if unknown.
        groups: class indices of each group.

    >>> group_means([[1.0, 3.0, None], [2.0, 4.0, 8.0]], {"easy": [0, 1], "hard": [2]})
    {'easy': array([2., 3.]), 'hard': array([nan,  8.])}
    """
    table_EK = np.array([[np.nan if v is None else v for v in row] for row in values], dtype=float)
    found = {}
    for name, members in groups.items():
        part_EM = table_EK[:, list(members)]
        known_E = (~np.isnan(part_EM)).sum(axis=1)
        sums_E = np.nansum(part_EM, axis=1)
        found[name] = np.where(known_E > 0, sums_E / np.maximum(known_E, 1), np.nan)
    return found


def check_values(values: Sequence[float] | Floats) -> Floats:
    """Return the values as a vector; reject an empty one and values that are not finite."""
    values_N = np.asarray(values, dtype=float).ravel()
    if not len(values_N):
        raise ValueError("values must have at least one entry, got none.")
    if not np.isfinite(values_N).all():
        raise ValueError(f"values must be finite, got {values_N[~np.isfinite(values_N)][0]}.")
    return values_N
