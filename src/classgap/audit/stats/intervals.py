"""Confidence intervals of proportions: Wilson's and Newcombe's in closed form, and a stratified bootstrap.

The bootstrap resamples each class with replacement. Only the number of correct samples matters, and it has a binomial
distribution, so it is drawn directly instead of N indices per resample.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from classgap.audit._types import Floats, Integers
from classgap.audit.results import Interval


def wilson_bounds(successes: ArrayLike, total: ArrayLike, confidence_level: float = 0.95) -> tuple[Floats, Floats]:
    """Lower and upper bounds of the Wilson score interval, elementwise; 0 and 1 where ``total`` is 0.

    (p̂ + z²/2n ± z √(p̂(1-p̂)/n + z²/4n²)) / (1 + z²/n), where z is the normal quantile of the confidence level.

    >>> low, high = wilson_bounds(8, 10)
    >>> round(float(low), 3), round(float(high), 3)
    (0.49, 0.943)
    """
    z = NormalDist().inv_cdf((1 + confidence_level) / 2)
    n = np.maximum(np.asarray(total, dtype=np.float64), 1)
    p = np.asarray(successes, dtype=np.float64) / n
    center = p + z**2 / (2 * n)
    half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    low = np.where(p == 0, 0, (center - half) / (1 + z**2 / n))
    high = np.where(p == 1, 1, (center + half) / (1 + z**2 / n))
    known = np.asarray(total) > 0
    return np.where(known, low, 0), np.where(known, high, 1)


def wilson_interval(successes: float, total: float, confidence_level: float = 0.95) -> Interval:
    """Wilson score interval of a proportion.

    >>> wilson_interval(0, 50).low
    0.0
    """
    low, high = wilson_bounds(successes, total, confidence_level)
    return Interval(float(low), float(high))


def newcombe_interval(
    first: tuple[float, float], second: tuple[float, float], confidence_level: float = 0.95
) -> Interval:
    """Newcombe interval of the difference of two independent proportions, each given as (successes, total).

    >>> interval = newcombe_interval((56, 70), (48, 80))
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.0524, 0.3339)
    """
    (a, n), (b, m) = first, second
    p_a, p_b = a / n, b / m
    low_a, high_a = wilson_interval(a, n, confidence_level)
    low_b, high_b = wilson_interval(b, m, confidence_level)
    below = np.hypot(p_a - low_a, high_b - p_b)
    above = np.hypot(high_a - p_a, p_b - low_b)
    return Interval(float(p_a - p_b - below), float(p_a - p_b + above))


def agresti_min_bounds(
    sum_U: Floats, squares_U: Floats, support_U: Integers, confidence_level: float = 0.95
) -> tuple[Floats, Floats]:
    """Lower and upper bounds of the interval of a mean paired difference, elementwise (Agresti and Min, 2005).

    For differences d in [-1, 1] of n samples, with half a sample added to each of the four cells of right and wrong,
    before and after: m ± z √((Σd² + 1)/(n + 2) - m²) / √(n + 2), m = Σd / (n + 2). Nonzero width even for n = 1.

    >>> low, high = agresti_min_bounds(np.array([10.0]), np.array([10.0]), np.array([20]))
    >>> round(float(low[0]), 3), round(float(high[0]), 3)
    (0.228, 0.681)
    """
    z, more_U = NormalDist().inv_cdf((1 + confidence_level) / 2), support_U + 2
    mean_U = sum_U / more_U
    half_U = z * np.sqrt(((squares_U + 1) / more_U - mean_U**2) / more_U)
    return np.maximum(mean_U - half_U, -1), np.minimum(mean_U + half_U, 1)


def draw_accuracies(probability_U: Floats, support_U: Integers, n_resamples: int, rng: np.random.Generator) -> Floats:
    """Draw accuracies of classes whose samples are right with the given probabilities, (R, U)."""
    return rng.binomial(support_U, probability_U, size=(n_resamples, len(support_U))) / support_U


def resample_accuracies(correct_U: Integers, support_U: Integers, n_resamples: int, rng: np.random.Generator) -> Floats:
    """Draw bootstrap accuracies of each class, (R, U), for means over classes. Each class must have samples.

    Resampling n samples underestimates their variance by a factor of (n-1)/n. Deviations are scaled to correct this, so
    values may fall outside [0, 1]. A class of one sample deviates as if drawn with the mean accuracy of all classes.

    >>> resample_accuracies(np.array([3]), np.array([3]), 2, np.random.default_rng(0)).tolist()
    [[1.0], [1.0]]
    """
    accuracy_U = correct_U / support_U
    probability_U = np.where(support_U > 1, accuracy_U, accuracy_U.mean())
    return accuracy_U + bessel_factor(support_U) * (
        draw_accuracies(probability_U, support_U, n_resamples, rng) - probability_U
    )


def bessel_factor(support_U: Integers) -> Floats:
    """√(n/(n-1)), corrects the too small deviation of resampled means of n samples; 1 for one sample.

    >>> bessel_factor(np.array([1, 2])).round(3).tolist()
    [1.0, 1.414]
    """
    return np.sqrt(support_U / np.maximum(support_U - 1, 1))


def percentile_interval(values_R: Floats, confidence_level: float = 0.95, *, within: tuple[float, float]) -> Interval:
    """Percentile interval of bootstrap values, clipped to ``within``.

    >>> percentile_interval(np.arange(101.0), confidence_level=0.5, within=(0.0, 60.0))
    Interval(low=25.0, high=60.0)
    """
    low, high = np.clip(np.quantile(values_R, [(1 - confidence_level) / 2, (1 + confidence_level) / 2]), *within)
    return Interval(float(low), float(high))


def centered_interval(
    values_R: Floats, estimate: float, confidence_level: float = 0.95, lowest: float = 0.0
) -> Interval:
    """Percentile interval of bootstrap values shifted so that their mean is ``estimate``, clipped at ``lowest``.

    Measures of dispersion grow with noise. Bootstrap values contain the noise twice and are biased upward; the shift
    removes this bias.

    >>> centered_interval(np.array([1.0, 2.0, 3.0]), estimate=0.5, confidence_level=1.0)
    Interval(low=0.0, high=1.5)
    """
    return percentile_interval(values_R - values_R.mean() + estimate, confidence_level, within=(lowest, np.inf))
