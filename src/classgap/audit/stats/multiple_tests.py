"""Corrections over many classes, and the number of classes that changed."""

from __future__ import annotations

from statistics import NormalDist
from typing import Literal, get_args

import numpy as np

from classgap.audit._types import Floats, Integers
from classgap.audit.diff_results import ChangedClasses
from classgap.audit.stats.paired_tests import benjamini_hochberg, holm

Correction = Literal["auto", "holm", "fdr"]

FDR_CLASSES = 50  # with more classes, "auto" controls the false discovery rate
THRESHOLD = 0.5  # p-values above it count unchanged classes


def adjust(p_values: Floats, correction: str) -> tuple[str, Floats]:
    """Adjust p-values for the number of classes.

    Args:
        p_values: one p-value per class.
        correction: "holm" (family-wise error rate), "fdr" (false discovery rate, Benjamini and Hochberg), or "auto":
            "fdr" for more than 50 classes, else "holm".

    Returns:
        The name of the method in statsmodels ("holm" or "fdr_bh"), and the adjusted p-values.

    Raises:
        ValueError: if ``correction`` is unknown.

    >>> name, adjusted = adjust(np.array([0.01, 0.04, 0.03]), "fdr")
    >>> name, adjusted.round(3).tolist()
    ('fdr_bh', [0.03, 0.04, 0.04])
    """
    if correction not in get_args(Correction):
        raise ValueError(f"correction must be one of {', '.join(get_args(Correction))}; got {correction!r}.")
    if correction == "fdr" or (correction == "auto" and len(p_values) > FDR_CLASSES):
        return "fdr_bh", benjamini_hochberg(p_values)
    return "holm", holm(p_values)


def attainable_mcnemar(changed_U: Integers, below: float = THRESHOLD) -> Floats:
    """Largest p-value of at most ``below`` that the exact McNemar test can reach with this many changed samples.

    0 where there is none: with one changed sample, the only p-value is 1.

    >>> attainable_mcnemar(np.array([0, 1, 2, 5])).tolist()
    [0.0, 0.0, 0.5, 0.375]
    """
    from scipy.special import bdtr

    largest_U = np.zeros(len(changed_U))
    for changed in np.unique(changed_U).tolist():
        p = 2 * bdtr(np.arange((changed + 1) // 2, dtype=np.float64), changed, 0.5)
        largest_U[changed_U == changed] = p[p <= below].max(initial=0.0)
    return largest_U


def changed_classes(p_U: Floats, attainable_U: Floats, confidence_level: float) -> ChangedClasses:
    """Estimate how many classes changed from their p-values, which may be discrete.

    Storey's estimator counts the p-values above a threshold λ. Discrete p-values do not exceed λ with probability
    1 - λ. As in the generalized estimator of Chen, Doerge and Heyse (2018), each class has its own threshold τ_k, the
    largest p-value of at most λ that it can attain, and an unchanged class exceeds it with probability exactly
    1 - τ_k. Then S = Σ_k 1(p_k > τ_k) / (1 - τ_k) has the expectation m if nothing changed, and at least the number of
    unchanged classes otherwise. The estimate is m - S. The variance of S over unchanged classes is at most
    Σ τ_k / (1 - τ_k), which gives a lower bound.

    Args:
        p_U: p-value of each class.
        attainable_U: threshold τ_k of each class.
        confidence_level: level of the one-sided bound.

    >>> p = np.array([0.001] * 60 + [0.2, 0.4, 0.6, 0.8] * 10)
    >>> changed_classes(p, np.full(100, 0.5), 0.95)
    ChangedClasses(estimate=60.0, at_least=43)
    """
    unchanged = float(((p_U > attainable_U) / (1 - attainable_U)).sum())
    spread = float(np.sqrt((attainable_U / (1 - attainable_U)).sum()))
    z = NormalDist().inv_cdf(confidence_level)
    low = len(p_U) - unchanged - z * spread
    return ChangedClasses(estimate=max(0.0, len(p_U) - unchanged), at_least=max(0, int(np.floor(low))))


def sign_test(up: int, down: int) -> float | None:
    """Two-sided exact binomial test that classes rise and fall equally often; ``None`` if no class changed.

    >>> round(sign_test(9, 1), 4)
    0.0215
    """
    if up + down == 0:
        return None
    from scipy.special import bdtr

    return float(min(1.0, 2 * bdtr(float(min(up, down)), up + down, 0.5)))
