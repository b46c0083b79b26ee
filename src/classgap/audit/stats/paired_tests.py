"""Tests for two classifiers on the same samples."""

from __future__ import annotations

import numpy as np

from classgap.audit._types import Floats, Integers

ROUNDING = 1e-12


def mcnemar_test(fixed: Integers, broken: Integers) -> Floats:
    """Two-sided p-value that as many samples were fixed as broken, elementwise; 1 where none changed.

    Given the n samples that changed, the number fixed has the distribution Binomial(n, ½) if nothing is behind it.

    >>> mcnemar_test(np.array([5, 0]), np.array([0, 0])).tolist()
    [0.0625, 1.0]
    """
    from scipy.special import bdtr

    fewer, changed = np.minimum(fixed, broken), fixed + broken
    return np.minimum(1.0, 2 * bdtr(fewer.astype(np.float64), changed, 0.5))


def sign_flip_test(moves_US: Integers, total_U: Integers) -> Floats:
    """Two-sided p-value of a sum of moves if each had either sign with the same probability; 1 where none moved.

    What McNemar's test is for one seed, where all moves are 1. With n_k moves of k the sum has the characteristic
    function Π_k cos(kt)^n_k, and a Fourier transform gives its distribution, exactly.

    Args:
        moves_US: how many samples of each class moved by 1 … S.
        total_U: the sum of their moves with their signs.

    >>> sign_flip_test(np.array([[5, 0], [1, 1]]), np.array([5, 3])).round(4).tolist()
    [0.0625, 0.5]
    """
    sizes = np.arange(1, moves_US.shape[1] + 1)
    return np.array([_flip_p(moves, sizes, abs(int(total))) for moves, total in zip(moves_US, total_U, strict=True)])


def _flip_p(moves_S: Integers, sizes_S: Integers, total: int) -> float:
    largest = int(moves_S @ sizes_S)
    angles = 2 * np.pi * np.arange(2 * largest + 1) / (2 * largest + 1)
    chances = np.fft.fft(np.prod(np.cos(angles[:, None] * sizes_S) ** moves_S, axis=1)).real / len(angles)
    sums = np.abs((np.arange(len(angles)) + largest) % len(angles) - largest)  # position j holds j, or j - its number
    return float(np.clip(chances[sums >= total].sum(), 0, 1))


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


def benjamini_hochberg(p_values: Floats) -> Floats:
    """Benjamini and Hochberg (1995): corrected p-values that keep the mean share of false findings at the level.

    If nothing is to be found, that is the chance of any finding, as with Holm; but where much is found, more is.
    The i-th smallest of m is multiplied by m / i, and none may be larger than the one after.

    >>> benjamini_hochberg(np.array([0.01, 0.04, 0.03])).round(3).tolist()
    [0.03, 0.04, 0.04]
    """
    order, m = np.argsort(p_values, kind="stable"), len(p_values)
    scaled = p_values[order] * m / np.arange(1, m + 1)
    corrected = np.empty_like(scaled)
    corrected[order] = np.minimum(1.0, np.minimum.accumulate(scaled[::-1])[::-1])
    return corrected


def paired_t_test(changes: Floats) -> float | None:
    """Two-sided p-value of the paired t-test that the mean change is 0; ``None`` for one change or all equal.

    Accuracies that differ by less than rounding are equal.

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

    A few runs say little of how much one class varies between runs, but all classes together do: the variance is
    φ (p(1-p) + q(1-q)) / n with p and q the accuracies before and after (half a sample more on each side, so that it
    is never 0) and one φ for all, the mean quotient of what is seen and this. U(S-1) degrees of freedom.

    >>> runs = np.array([[0.5, 0.5], [0.6, 0.4]])
    >>> pooled_t_test(runs, runs + np.array([[0.3, 0.05], [0.3, -0.05]]), np.array([50, 50])).round(3).tolist()
    [0.01, 1.0]
    """
    from scipy.special import stdtr

    changes_SU = after_SU - before_SU
    shares = [(side.mean(axis=0) * support_U + 0.5) / (support_U + 1) for side in (before_SU, after_SU)]
    noise_U = np.sum([share * (1 - share) for share in shares], axis=0) / support_U
    dispersion = (changes_SU.var(axis=0, ddof=1) / noise_U).mean()
    runs, classes = changes_SU.shape
    # Runs that agree to the last digit leave no doubt.
    t_U = changes_SU.mean(axis=0) / np.sqrt(np.maximum(dispersion, ROUNDING) * noise_U / runs)
    return 2 * stdtr(classes * (runs - 1), -np.abs(t_U))
