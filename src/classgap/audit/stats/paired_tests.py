"""Paired tests for two classifiers on the same samples, and corrections for multiple tests."""

from __future__ import annotations

import numpy as np

from classgap.audit._types import Floats, Integers

ROUNDING = 1e-12


def mcnemar_test(fixed: Integers, broken: Integers) -> Floats:
    """Two-sided p-value of the exact McNemar test, elementwise; 1 where no sample changed.

    Under the null hypothesis, the number of fixed samples among the n that changed is Binomial(n, ½).

    >>> mcnemar_test(np.array([5, 0]), np.array([0, 0])).tolist()
    [0.0625, 1.0]
    """
    from scipy.special import bdtr

    fewer, changed = np.minimum(fixed, broken), fixed + broken
    return np.minimum(1.0, 2 * bdtr(fewer.astype(np.float64), changed, 0.5))


def sign_flip_test(moves_US: Integers, total_U: Integers) -> Floats:
    """Two-sided p-value of the sign-flip test that the sum of changes is 0; 1 where no sample changed.

    It generalizes McNemar's test, in which all changes are ±1, to S runs. The sum of n_k changes of ±k has the
    characteristic function Π_k cos(kt)^n_k, and a Fourier transform yields its exact distribution.

    Args:
        moves_US: number of samples of each class that changed by 1 … S, in either direction.
        total_U: signed sum of the changes of each class.

    >>> sign_flip_test(np.array([[5, 0], [1, 1]]), np.array([5, 3])).round(4).tolist()
    [0.0625, 0.5]
    """
    sizes = np.arange(1, moves_US.shape[1] + 1)
    return np.array([_flip_p(moves, sizes, abs(int(total))) for moves, total in zip(moves_US, total_U, strict=True)])


def _flip_p(moves_S: Integers, sizes_S: Integers, total: int) -> float:
    largest = int(moves_S @ sizes_S)
    angles = 2 * np.pi * np.arange(2 * largest + 1) / (2 * largest + 1)
    chances = np.fft.fft(np.prod(np.cos(angles[:, None] * sizes_S) ** moves_S, axis=1)).real / len(angles)
    sums = np.abs(
        (np.arange(len(angles)) + largest) % len(angles) - largest
    )  # the transform wraps negative sums around
    return float(np.clip(chances[sums >= total].sum(), 0, 1))


def holm(p_values: Floats) -> Floats:
    """Adjust p-values by Holm's step-down method, which controls the family-wise error rate.

    The i-th smallest of m p-values is multiplied by m - i + 1; then each is at least as large as its predecessor.

    >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    scaled = p_values[order] * np.arange(len(p_values), 0, -1)
    corrected = np.empty_like(scaled)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(scaled))
    return corrected


def benjamini_hochberg(p_values: Floats) -> Floats:
    """Adjust p-values by the method of Benjamini and Hochberg (1995), which controls the false discovery rate.

    The i-th smallest of m p-values is multiplied by m / i; then each is at most as large as its successor.

    >>> benjamini_hochberg(np.array([0.01, 0.04, 0.03])).round(3).tolist()
    [0.03, 0.04, 0.04]
    """
    order, m = np.argsort(p_values, kind="stable"), len(p_values)
    scaled = p_values[order] * m / np.arange(1, m + 1)
    corrected = np.empty_like(scaled)
    corrected[order] = np.minimum(1.0, np.minimum.accumulate(scaled[::-1])[::-1])
    return corrected


def paired_t_test(changes: Floats) -> float | None:
    """Two-sided p-value of the paired t-test; ``None`` for a single change or equal changes.

    Changes that differ only by rounding are equal.

    >>> round(paired_t_test(np.array([1.0, 2.0, 3.0])), 4)
    0.0742
    """
    if len(changes) < 2 or np.ptp(changes) < ROUNDING:
        return None
    from scipy.special import stdtr

    t = changes.mean() / (changes.std(ddof=1) / np.sqrt(len(changes)))
    return float(2 * stdtr(len(changes) - 1, -abs(t)))


def pooled_t_test(before_SU: Floats, after_SU: Floats, support_U: Integers) -> Floats:
    """Two-sided p-value of each class that its mean change over S runs is 0, (U,).

    A few runs cannot estimate the variance of a single class, so the variance is pooled over classes. It is modeled as
    φ (p(1-p) + q(1-q)) / n, where p and q are the accuracies before and after, with half a sample added to right and to
    wrong so that it is never 0. φ is the mean ratio of observed to modeled variance. U(S-1) degrees of freedom.

    >>> runs = np.array([[0.5, 0.5], [0.6, 0.4]])
    >>> pooled_t_test(runs, runs + np.array([[0.3, 0.05], [0.3, -0.05]]), np.array([50, 50])).round(3).tolist()
    [0.01, 1.0]
    """
    from scipy.special import stdtr

    changes_SU = after_SU - before_SU
    proportions = [(side.mean(axis=0) * support_U + 0.5) / (support_U + 1) for side in (before_SU, after_SU)]
    noise_U = np.sum([p * (1 - p) for p in proportions], axis=0) / support_U
    dispersion = (changes_SU.var(axis=0, ddof=1) / noise_U).mean()
    runs, classes = changes_SU.shape
    # If all runs agree, the dispersion is 0.
    t_U = changes_SU.mean(axis=0) / np.sqrt(np.maximum(dispersion, ROUNDING) * noise_U / runs)
    return 2 * stdtr(classes * (runs - 1), -np.abs(t_U))
