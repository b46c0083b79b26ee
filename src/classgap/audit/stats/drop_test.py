"""Test that the accuracy of a class fell by more than a limit, for two classifiers on the same samples.

Of n samples, b are broken (right before, wrong after) and c are fixed. The drop is p_b - p_c. Tango's score statistic
compares it with a limit δ: T = (b - c - nδ) / √(n (2q + δ(1-δ))), where q is the maximum-likelihood estimate of p_c if
p_b = p_c + δ (Tango, 1998). The p-value is the exact probability of a statistic at least as large under that estimate
(an estimated, or E, p-value; Lloyd, 2008), not the normal tail, which is far off at the levels that hundreds of classes
require. It is the largest of three: at the estimate, and one standard error to either side. Over all p_c, the size of
the test then exceeds its level by at most 4 %, for 5 to 100 samples and levels from 0.05 down to 0.00005.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from classgap.audit._types import Floats, Integers

NEGLIGIBLE_SDS = 8.5  # counts further from their mean have a probability below 1e-16
EPSILON = 1e-9  # statistics this close are equal
SHIFTS = (-1.0, 0.0, 1.0)  # standard errors from the estimate at which the p-value is computed
STEPS = 14  # of bisections; 0.01 percentage points
CHUNK_CELLS = 2_000_000
POWER = 0.8  # probability of finding a detectable drop
EXACT_POWER = 400  # samples up to which detectable drops are exact
MAX_SIZES = 24  # numbers of samples at which detectable drops are computed


def score_statistic(broken: ArrayLike, fixed: ArrayLike, support: ArrayLike, limit: ArrayLike) -> Floats:
    """Tango's score statistic of the hypothesis that the drop is ``limit``, elementwise; 0 where it is 0/0.

    >>> float(score_statistic(12, 3, 50, 0.0).round(3))
    2.324
    """
    b, c, n, d = (np.asarray(value, dtype=np.float64) for value in (broken, fixed, support, limit))
    q = restricted_estimate(b, c, n, d)
    variance = n * (2 * q + d * (1 - d))
    excess = b - c - n * d
    safe = np.where(variance > EPSILON, variance, 1.0)
    return np.where(variance > EPSILON, excess / np.sqrt(safe), np.where(excess > EPSILON, np.inf, 0.0))


def restricted_estimate(broken: ArrayLike, fixed: ArrayLike, support: ArrayLike, limit: ArrayLike) -> Floats:
    """Maximum-likelihood estimate of the probability that a sample is fixed, if the drop is ``limit`` (≥ 0).

    >>> float(restricted_estimate(12, 3, 50, 0.0))
    0.15
    """
    b, c, n, d = (np.asarray(value, dtype=np.float64) for value in (broken, fixed, support, limit))
    linear = (2 * n - b + c) * d - b - c
    root = np.sqrt(np.maximum(linear**2 + 8 * n * c * d * (1 - d), 0.0))
    return np.clip((root - linear) / (4 * n), 0.0, (1 - d) / 2)


def drop_p_values(broken_U: ArrayLike, fixed_U: ArrayLike, support_U: ArrayLike, limit: ArrayLike) -> Floats:
    """One-sided p-value of each class that its drop is at most ``limit``, (U,).

    Args:
        broken_U: samples right before and wrong after.
        fixed_U: samples wrong before and right after.
        support_U: samples.
        limit: largest drop allowed, a fraction in [0, 1), one for all classes or one per class.

    >>> drop_p_values([12, 12], [3, 3], [50, 50], [0.0, 0.1]).round(4).tolist()
    [0.01, 0.1483]
    """
    b, c, n = (np.asarray(value, dtype=np.int64) for value in (broken_U, fixed_U, support_U))
    d = np.broadcast_to(np.asarray(limit, dtype=np.float64), b.shape)
    cases, back = np.unique(np.stack([b, c, n, d]), axis=1, return_inverse=True)
    b, c, n = (row.astype(np.int64) for row in cases[:3])
    observed, q = score_statistic(b, c, n, cases[3]), restricted_estimate(b, c, n, cases[3])
    deviation = np.sqrt(q * (1 - q) / n)
    p = np.empty(len(b))
    step = max(1, CHUNK_CELLS // int(n.max(initial=1) + 1))
    for start in range(0, len(b), step):
        part = slice(start, start + step)
        nearby = [np.clip(q[part] + shift * deviation[part], 0.0, (1 - cases[3][part]) / 2) for shift in SHIFTS]
        p[part] = np.max([_tail(observed[part], n[part], each, cases[3][part]) for each in nearby], axis=0)
    return p[back.reshape(-1)]


def drop_bounds(broken_U: ArrayLike, fixed_U: ArrayLike, support_U: ArrayLike, alpha: float) -> Floats:
    """Lower confidence bound of each drop: the largest limit whose test is significant, 0 if none is, (U,).

    Args:
        broken_U: samples right before and wrong after.
        fixed_U: samples wrong before and right after.
        support_U: samples.
        alpha: level of each test.

    >>> drop_bounds([30, 12, 0], [1, 3, 0], [50, 50, 50], 0.05).round(2).tolist()
    [0.43, 0.05, 0.0]
    """
    b, c, n = (np.asarray(value, dtype=np.int64) for value in (broken_U, fixed_U, support_U))
    return largest_limits(
        lambda chosen, limit: drop_p_values(b[chosen], c[chosen], n[chosen], limit), (b - c) / n, alpha
    )


def largest_limits(p_values: Callable[[Integers, Floats], Floats], drop_U: Floats, alpha: float) -> Floats:
    """Return the largest limit at which each drop is significant, 0 if none is, by bisection, (U,).

    Args:
        p_values: p-values of the chosen classes for one limit each.
        drop_U: observed drops, which no significant limit exceeds.
        alpha: level of each test.
    """
    bounds_U = np.zeros(len(drop_U))
    fell = np.flatnonzero(drop_U > 0)
    if not len(fell):
        return bounds_U
    fell = fell[p_values(fell, np.zeros(len(fell))) <= alpha]
    low, high = np.zeros(len(fell)), drop_U[fell]  # significant, and not
    for _ in range(STEPS if len(fell) else 0):
        middle = (low + high) / 2
        significant = p_values(fell, middle) <= alpha
        low, high = np.where(significant, middle, low), np.where(significant, high, middle)
    bounds_U[fell] = low
    return bounds_U


def detectable_drops(support_U: ArrayLike, fixed_rate: float, limit: float, alpha: float) -> Floats:
    """Smallest true drop of each class that the test finds with probability ``POWER``, (U,); NaN if there is none.

    Args:
        support_U: samples of each class.
        fixed_rate: probability that a sample is fixed.
        limit: largest drop allowed.
        alpha: level of each test.

    >>> detectable_drops([50, 5000, 3], 0.02, 0.0, 0.05).round(3).tolist()
    [0.142, 0.008, nan]
    """
    return interpolate_sizes(
        np.asarray(support_U, dtype=np.int64), lambda n: _detectable_drop(n, fixed_rate, limit, alpha, POWER)
    )


def interpolate_sizes(support_U: Integers, detectable: Callable[[int], float]) -> Floats:
    """Values of a smooth function of the number of samples, computed at a few numbers only; NaN below known ones."""
    sizes = np.unique(support_U)
    if len(sizes) > MAX_SIZES:
        sizes = np.unique(np.geomspace(sizes[0], sizes[-1], MAX_SIZES).round().astype(np.int64))
    found = np.array([detectable(int(n)) for n in sizes])
    known = ~np.isnan(found)
    if not known.any():
        return np.full(len(support_U), np.nan)
    drops_U = np.interp(np.log(support_U), np.log(sizes[known]), found[known])
    return np.where(support_U < sizes[known][0], np.nan, drops_U)


def _detectable_drop(n: int, fixed_rate: float, limit: float, alpha: float, power: float) -> float:
    from scipy.special import bdtrc

    if n > EXACT_POWER:
        return _approximate_drop(n, fixed_rate, limit, alpha, power)
    spread = NEGLIGIBLE_SDS / 2 * np.sqrt(n * fixed_rate * (1 - fixed_rate)) + 2
    fixed_J = np.arange(max(0, int(n * fixed_rate - spread)), min(n, int(n * fixed_rate + spread) + 1) + 1)
    low_J, high_J = np.zeros_like(fixed_J), n - fixed_J + 1
    while (low_J < high_J).any():  # smallest significant number of broken samples for each number of fixed ones
        middle_J = np.minimum((low_J + high_J) // 2, n - fixed_J)
        significant = drop_p_values(middle_J, fixed_J, np.full(len(fixed_J), n), limit) <= alpha
        significant |= low_J >= high_J
        high_J = np.where(significant, np.minimum(middle_J, high_J), high_J)
        low_J = np.where(significant, low_J, middle_J + 1)
    chance_J = binomial(fixed_J, np.array(n), np.array(fixed_rate))

    def found_with(drop: float) -> float:
        rate = min(1.0, (fixed_rate + drop) / (1 - fixed_rate))
        beyond_J = np.where(high_J > n - fixed_J, 0.0, bdtrc(np.maximum(high_J - 1.0, 0.0), n - fixed_J, rate))
        return float((chance_J * np.where(high_J == 0, 1.0, beyond_J)).sum())

    low, high = limit, 1 - 2 * fixed_rate
    if high <= low or found_with(high) < power:
        return float("nan")
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if found_with(middle) >= power else (middle, high)
    return high


def _approximate_drop(n: int, fixed_rate: float, limit: float, alpha: float, power: float) -> float:
    """Detectable drop of a large class by the normal approximation."""
    z_alpha, z_power = (NormalDist().inv_cdf(value) for value in (1 - alpha, power))
    low, high = limit, 1 - 2 * fixed_rate
    for _ in range(2 * STEPS):
        middle = (low + high) / 2
        errors = [np.sqrt(max(2 * fixed_rate + middle - each**2, 0.0) / n) for each in (limit, middle)]
        low, high = (low, middle) if middle - limit >= z_alpha * errors[0] + z_power * errors[1] else (middle, high)
    return high


def _tail(observed_U: Floats, support_U: Integers, q_U: Floats, limit_U: Floats) -> Floats:
    """Exact probability of a statistic of at least ``observed_U``, if samples are fixed with probability ``q_U``.

    The number of fixed samples is Binomial(n, q). Given j of them, the number of broken ones is binomial, and the
    statistic grows with it.
    """
    from scipy.special import bdtrc

    spread_U = NEGLIGIBLE_SDS * np.sqrt(support_U * q_U * (1 - q_U)) + NEGLIGIBLE_SDS**2
    first_U = np.maximum(np.floor(support_U * q_U - spread_U), 0).astype(np.int64)
    last_U = np.minimum(np.ceil(support_U * q_U + spread_U), support_U).astype(np.int64)
    fixed_UJ = first_U[:, None] + np.arange(int((last_U - first_U).max(initial=0)) + 1)
    valid_UJ = fixed_UJ <= last_U[:, None]
    fixed_UJ = np.minimum(fixed_UJ, last_U[:, None])
    n_U1, q_U1, limit_U1 = support_U[:, None], q_U[:, None], limit_U[:, None]
    low_UJ, high_UJ = np.zeros_like(fixed_UJ), n_U1 - fixed_UJ + 1  # the smallest count of broken samples is in between
    while (low_UJ < high_UJ).any():
        middle_UJ = (low_UJ + high_UJ) // 2
        reached_UJ = score_statistic(middle_UJ, fixed_UJ, n_U1, limit_U1) >= observed_U[:, None] - EPSILON
        reached_UJ |= middle_UJ + fixed_UJ > n_U1
        high_UJ = np.where(reached_UJ, middle_UJ, high_UJ)
        low_UJ = np.where(reached_UJ, low_UJ, np.minimum(middle_UJ + 1, high_UJ))
    others_UJ = n_U1 - fixed_UJ
    rate_U1 = np.clip((q_U1 + limit_U1) / (1 - q_U1), 0.0, 1.0)
    beyond_UJ = np.where(
        high_UJ == 0, 1.0, np.where(high_UJ > others_UJ, 0.0, bdtrc(np.maximum(high_UJ - 1.0, 0), others_UJ, rate_U1))
    )
    return np.minimum((np.where(valid_UJ, binomial(fixed_UJ, n_U1, q_U1), 0.0) * beyond_UJ).sum(axis=1), 1.0)


def binomial(successes: Integers, total: Integers, probability: Floats) -> Floats:
    """P(X = successes), X ~ Binomial(total, probability)."""
    from scipy.special import gammaln, xlog1py, xlogy

    rest = total - successes
    log_choose = gammaln(total + 1) - gammaln(successes + 1) - gammaln(rest + 1)
    return np.exp(log_choose + xlogy(successes, probability) + xlog1py(rest, -probability))
