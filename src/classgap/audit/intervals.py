"""How sure a share is: Wilson's and Newcombe's intervals in closed form, and a bootstrap over samples.

The bootstrap draws, within each class, as many samples as the class has, with replacement. What it needs of them is
how many are right, which has the binomial distribution: drawing that number is the same bootstrap, without drawing N
indices a replicate.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from classgap.audit.records import Interval
from classgap.audit.samples import Integers

Floats = NDArray[np.float64]


def wilson_bounds(successes: ArrayLike, total: ArrayLike, level: float = 0.95) -> tuple[Floats, Floats]:
    """Lower and upper ends of the Wilson score interval, elementwise; 0 and 1 where ``total`` is 0.

    (p̂ + z²/2n ± z √(p̂(1-p̂)/n + z²/4n²)) / (1 + z²/n), z the normal quantile of the level.

    >>> low, high = wilson_bounds(8, 10)
    >>> round(float(low), 3), round(float(high), 3)
    (0.49, 0.943)
    """
    z = NormalDist().inv_cdf((1 + level) / 2)
    n = np.maximum(np.asarray(total, dtype=np.float64), 1)
    share = np.asarray(successes, dtype=np.float64) / n
    centre = share + z**2 / (2 * n)
    half = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    low = np.where(share == 0, 0, (centre - half) / (1 + z**2 / n))
    high = np.where(share == 1, 1, (centre + half) / (1 + z**2 / n))
    known = np.asarray(total) > 0
    return np.where(known, low, 0), np.where(known, high, 1)


def wilson(successes: float, total: float, level: float = 0.95) -> Interval:
    """The Wilson score interval of one share.

    >>> wilson(0, 50).low
    0.0
    """
    low, high = wilson_bounds(successes, total, level)
    return Interval(float(low), float(high))


def newcombe(first: tuple[float, float], second: tuple[float, float], level: float = 0.95) -> Interval:
    """Interval of the difference of two independent shares, each (successes, total), from their Wilson intervals.

    >>> interval = newcombe((56, 70), (48, 80))
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.0524, 0.3339)
    """
    (a, n), (b, m) = first, second
    share_a, share_b = a / n, b / m
    low_a, high_a = wilson(a, n, level)
    low_b, high_b = wilson(b, m, level)
    below = np.hypot(share_a - low_a, high_b - share_b)
    above = np.hypot(high_a - share_a, share_b - low_b)
    return Interval(float(share_a - share_b - below), float(share_a - share_b + above))


def resampled_accuracies(
    correct_U: Integers, support_U: Integers, replicates: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Accuracies of each class in each bootstrap replicate, (R, U); every class needs a sample.

    >>> resampled_accuracies(np.array([3]), np.array([3]), 2, np.random.default_rng(0)).tolist()
    [[1.0], [1.0]]
    """
    draws_RU = rng.binomial(support_U, correct_U / support_U, size=(replicates, len(support_U)))
    return draws_RU / support_U


def percentile_interval(values_R: Floats, level: float = 0.95) -> Interval:
    """The middle ``level`` of bootstrap values.

    >>> percentile_interval(np.arange(101.0), level=0.5)
    Interval(low=25.0, high=75.0)
    """
    low, high = np.quantile(values_R, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def centred_interval(values_R: Floats, estimate: float, level: float = 0.95, lowest: float = 0.0) -> Interval:
    """The middle of bootstrap values, moved so that their mean is the estimate, and cut off at ``lowest``.

    Measures of unevenness grow with any noise, so that bootstrap values, which have the noise twice, lie above the
    estimate; the move takes that back.

    >>> centred_interval(np.array([1.0, 2.0, 3.0]), estimate=0.5, level=1.0)
    Interval(low=0.0, high=1.5)
    """
    low, high = percentile_interval(values_R - values_R.mean() + estimate, level)
    return Interval(max(low, lowest), max(high, lowest))
