"""Test that the accuracy of a class fell by more than a limit, for two classifiers on different samples.

Of n samples before, a are right, and of m samples after, b. The score statistic of Farrington and Manning (1990)
compares the drop with a limit δ: T = (a/n - b/m - δ) / √((q+δ)(1-q-δ)/n + q(1-q)/m), where q is the maximum-likelihood
estimate of the accuracy after if that before is q + δ. As for paired samples (:mod:`classgap.audit.stats.drop_test`),
the p-value is the exact probability of a statistic at least as large: the largest over q and one standard error to
either side.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from classgap.audit._types import Floats, Integers
from classgap.audit.stats.drop_test import (
    CHUNK_CELLS,
    EPSILON,
    EXACT_POWER,
    NEGLIGIBLE_SDS,
    POWER,
    SHIFTS,
    STEPS,
    binomial,
    interpolate_sizes,
    largest_limits,
)


def unpaired_estimate(
    before_right: ArrayLike, before_n: ArrayLike, after_right: ArrayLike, after_n: ArrayLike, limit: ArrayLike
) -> Floats:
    """Maximum-likelihood estimate of the accuracy after, if that before is higher by ``limit`` (≥ 0), elementwise.

    The root of the likelihood equation, a cubic, in closed form (Miettinen and Nurminen, 1985).

    >>> float(unpaired_estimate(40, 50, 20, 50, 0.0).round(6))
    0.6
    """
    a, n, b, m, d = (
        np.asarray(value, dtype=np.float64) for value in (before_right, before_n, after_right, after_n, limit)
    )
    total, right = n + m, a + b
    square = ((n + 2 * m) * d - total - right) / (3 * total)
    linear = ((m * d - total - 2 * b) * d + right) / (3 * total)
    constant = b * d * (1 - d) / (2 * total)
    turn = square**3 - 1.5 * linear * square + constant
    size = np.where(turn >= 0, 1.0, -1.0) * np.sqrt(np.maximum(square**2 - linear, 0.0))
    safe = np.where(np.abs(size) > EPSILON, size, 1.0)
    angle = (np.pi + np.arccos(np.clip(turn / safe**3, -1.0, 1.0))) / 3
    root = np.where(np.abs(size) > EPSILON, 2 * size * np.cos(angle), 0.0) - square
    return np.clip(root, 0.0, 1 - d)


def unpaired_statistic(
    before_right: ArrayLike, before_n: ArrayLike, after_right: ArrayLike, after_n: ArrayLike, limit: ArrayLike
) -> Floats:
    """Farrington and Manning's score statistic of the hypothesis that the drop is ``limit``; 0 where it is 0/0.

    >>> float(unpaired_statistic(40, 50, 30, 50, 0.0).round(3))
    2.182
    """
    a, n, b, m, d = (
        np.asarray(value, dtype=np.float64) for value in (before_right, before_n, after_right, after_n, limit)
    )
    q = unpaired_estimate(a, n, b, m, d)
    variance = (q + d) * (1 - q - d) / n + q * (1 - q) / m
    excess = a / n - b / m - d
    safe = np.where(variance > EPSILON, variance, 1.0)
    return np.where(variance > EPSILON, excess / np.sqrt(safe), np.where(excess > EPSILON, np.inf, 0.0))


def unpaired_p_values(
    before_right_U: ArrayLike, before_n_U: ArrayLike, after_right_U: ArrayLike, after_n_U: ArrayLike, limit: ArrayLike
) -> Floats:
    """One-sided p-value of each class that its drop is at most ``limit``, (U,).

    Args:
        before_right_U: correct samples before.
        before_n_U: samples before.
        after_right_U: correct samples after.
        after_n_U: samples after.
        limit: largest drop allowed, a fraction in [0, 1), one for all classes or one per class.

    >>> unpaired_p_values([40, 40], [50, 50], [30, 30], [50, 50], [0.0, 0.1]).round(4).tolist()
    [0.0153, 0.1425]
    """
    columns = [np.asarray(value, dtype=np.int64) for value in (before_right_U, before_n_U, after_right_U, after_n_U)]
    limit_U = np.broadcast_to(np.asarray(limit, dtype=np.float64), columns[0].shape)
    cases, back = np.unique(np.stack([*columns, limit_U]), axis=1, return_inverse=True)
    a, n, b, m = (row.astype(np.int64) for row in cases[:4])
    d = cases[4]
    p = np.empty(len(a))
    step = max(1, CHUNK_CELLS // int(m.max(initial=1) + 1))
    for start in range(0, len(a), step):
        part = slice(start, start + step)
        p[part] = _tail(a[part], n[part], b[part], m[part], d[part])
    return p[back.reshape(-1)]


def unpaired_bounds(
    before_right_U: Integers, before_n_U: Integers, after_right_U: Integers, after_n_U: Integers, alpha: float
) -> Floats:
    """Lower confidence bound of each drop: the largest limit whose test is significant, 0 if none is, (U,).

    >>> table = np.array([45, 40]), np.array([50, 50]), np.array([20, 40]), np.array([50, 50])
    >>> unpaired_bounds(*table, alpha=0.05).round(2).tolist()
    [0.35, 0.0]
    """
    a, n, b, m = before_right_U, before_n_U, after_right_U, after_n_U
    return largest_limits(
        lambda chosen, limit: unpaired_p_values(a[chosen], n[chosen], b[chosen], m[chosen], limit), a / n - b / m, alpha
    )


def unpaired_detectable(
    before_n_U: Integers, after_n_U: Integers, accuracy: float, limit: float, alpha: float
) -> Floats:
    """Smallest true drop of each class that the test finds with probability ``POWER``, (U,); NaN if there is none.

    Args:
        before_n_U: samples before.
        after_n_U: samples after; different numbers count as their harmonic mean.
        accuracy: accuracy before.
        limit: largest drop allowed.
        alpha: level of each test.

    >>> unpaired_detectable(np.array([50, 2]), np.array([50, 2]), 0.8, 0.0, 0.05).round(2).tolist()
    [0.23, nan]
    """
    each_U = np.maximum(np.round(2 / (1 / before_n_U + 1 / after_n_U)), 1).astype(np.int64)
    return interpolate_sizes(each_U, lambda n: _detectable_drop(n, accuracy, limit, alpha, POWER))


def _detectable_drop(n: int, accuracy: float, limit: float, alpha: float, power: float) -> float:
    if accuracy <= limit:
        return float("nan")
    found_with = (_exact_power if n <= EXACT_POWER else _approximate_power)(n, accuracy, limit, alpha)
    low, high = limit, accuracy
    if found_with(high) < power:
        return float("nan")
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if found_with(middle) >= power else (middle, high)
    return high


def _exact_power(n: int, accuracy: float, limit: float, alpha: float) -> Callable[[float], float]:
    """Probability that a drop is found, as a function of the drop."""
    spread = NEGLIGIBLE_SDS / 2 * np.sqrt(n * accuracy * (1 - accuracy)) + 2
    before_J = np.arange(max(0, int(n * accuracy - spread)), min(n, int(n * accuracy + spread) + 1) + 1)
    n_J = np.full(len(before_J), n)
    low_J, high_J = np.full(len(before_J), -1), before_J.copy()  # the largest significant number after is in between
    while (low_J < high_J).any():
        middle_J = (low_J + high_J + 1) // 2
        p_J = unpaired_p_values(before_J, n_J, np.maximum(middle_J, 0), n_J, limit)
        significant_J = (p_J <= alpha) | (middle_J < 0)
        low_J, high_J = np.where(significant_J, middle_J, low_J), np.where(significant_J, high_J, middle_J - 1)
    chance_J = binomial(before_J, n_J, np.full(len(before_J), accuracy))
    return lambda drop: float(chance_J @ (1 - _at_least(low_J + 1, n_J, np.full(len(n_J), accuracy - drop))))


def _approximate_power(n: int, accuracy: float, limit: float, alpha: float) -> Callable[[float], float]:
    """The same by the normal approximation."""
    normal = NormalDist()

    def found_with(drop: float) -> float:
        before, after = accuracy, accuracy - drop
        middle = (before + after + limit) / 2, (before + after - limit) / 2  # accuracies of both sides at the limit
        null, true = (
            np.sqrt(sum(p * (1 - p) for p in (min(max(each, 0.0), 1.0) for each in pair)) / n)
            for pair in (middle, (before, after))
        )
        excess = drop - limit - normal.inv_cdf(1 - alpha) * null
        return normal.cdf(excess / true) if true > 0 else float(excess >= 0)

    return found_with


def _tail(a_U: Integers, n_U: Integers, b_U: Integers, m_U: Integers, limit_U: Floats) -> Floats:
    """Exact probability of a statistic of at least the observed one; the largest over nearby accuracies.

    Given the number of correct samples after, the statistic grows with the number before, so that a smallest number
    bounds the tail.
    """
    observed_U1 = unpaired_statistic(a_U, n_U, b_U, m_U, limit_U)[:, None]
    q_U = unpaired_estimate(a_U, n_U, b_U, m_U, limit_U)
    error_U = np.sqrt(q_U * (1 - q_U) / (n_U + m_U))
    near_SU = [np.clip(q_U + shift * error_U, 0.0, 1 - limit_U) for shift in SHIFTS]
    low_U, high_U = near_SU[0], near_SU[-1]
    spread_U = NEGLIGIBLE_SDS * np.sqrt(m_U * np.maximum(low_U * (1 - low_U), high_U * (1 - high_U)))
    first_U = np.maximum(np.floor(m_U * low_U - spread_U - NEGLIGIBLE_SDS**2), 0).astype(np.int64)
    last_U = np.minimum(np.ceil(m_U * high_U + spread_U + NEGLIGIBLE_SDS**2), m_U).astype(np.int64)
    after_UJ = first_U[:, None] + np.arange(int((last_U - first_U).max(initial=0)) + 1)
    valid_UJ = after_UJ <= last_U[:, None]
    after_UJ = np.minimum(after_UJ, last_U[:, None])
    n_U1, m_U1, limit_U1 = n_U[:, None], m_U[:, None], limit_U[:, None]
    least_UJ = _least_before(observed_U1, after_UJ, n_U1, m_U1, limit_U1)
    tails = [
        (np.where(valid_UJ, binomial(after_UJ, m_U1, q_U1), 0.0) * _at_least(least_UJ, n_U1, q_U1 + limit_U1)).sum(1)
        for q_U1 in (near_U[:, None] for near_U in near_SU)
    ]
    return np.minimum(np.max(tails, axis=0), 1.0)


def _least_before(
    observed_U1: Floats, after_UJ: Integers, n_U1: Integers, m_U1: Integers, limit_U1: Floats
) -> Integers:
    """Smallest number of correct samples before whose statistic reaches the observed one; n + 1 if none does."""
    low_UJ, high_UJ = np.zeros_like(after_UJ), np.broadcast_to(n_U1 + 1, after_UJ.shape).copy()
    while (low_UJ < high_UJ).any():
        middle_UJ = (low_UJ + high_UJ) // 2
        statistic_UJ = unpaired_statistic(np.minimum(middle_UJ, n_U1), n_U1, after_UJ, m_U1, limit_U1)
        reached_UJ = (statistic_UJ >= observed_U1 - EPSILON) | (middle_UJ > n_U1)
        high_UJ = np.where(reached_UJ, middle_UJ, high_UJ)
        low_UJ = np.where(reached_UJ, low_UJ, np.minimum(middle_UJ + 1, high_UJ))
    return high_UJ


def _at_least(least: Integers, n: Integers, rate: Floats) -> Floats:
    """P(X ≥ least), X ~ Binomial(n, rate)."""
    from scipy.special import bdtrc

    beyond = bdtrc(np.clip(least - 1.0, 0.0, n), n, np.clip(rate, 0.0, 1.0))
    return np.where(least <= 0, 1.0, np.where(least > n, 0.0, beyond))
