"""Intervals against scipy, and the bootstrap against drawing indices."""

import numpy as np
import pytest
from scipy import stats

from classgap.audit.stats.intervals import (
    agresti_min_bounds,
    centered_interval,
    newcombe_interval,
    percentile_interval,
    resample_accuracies,
    wilson_bounds,
    wilson_interval,
)


@pytest.mark.parametrize("confidence_level", [0.8, 0.95, 0.99])
@pytest.mark.parametrize(("right", "total"), [(0, 1), (0, 50), (1, 1), (50, 50), (7, 31), (499, 1000)])
def test_wilson_agrees_with_scipy(right, total, confidence_level):
    expected = stats.binomtest(right, total).proportion_ci(confidence_level, method="wilson")
    got = wilson_interval(right, total, confidence_level)
    assert got.low == pytest.approx(expected.low, abs=1e-12)
    assert got.high == pytest.approx(expected.high, abs=1e-12)


def test_wilson_of_no_samples_is_the_unit_interval():
    low, high = wilson_bounds([0, 3], [0, 4])
    assert (low[0], high[0]) == (0, 1)
    assert 0 < low[1] < 0.75 < high[1] < 1


def test_newcombe_published_example():
    # Newcombe (1998), Statistics in Medicine 17, Table II, method 10: 56/70 - 48/80 and 9/10 - 3/10.
    assert np.round(newcombe_interval((56, 70), (48, 80)), 4).tolist() == [0.0524, 0.3339]
    assert np.round(newcombe_interval((9, 10), (3, 10)), 4).tolist() == [0.1705, 0.8090]


def test_binomial_draws_are_the_bootstrap_over_samples():
    rng = np.random.default_rng(0)
    outcomes = np.array([1] * 13 + [0] * 7)
    by_index = outcomes[rng.integers(0, 20, (40_000, 20))].mean(axis=1)
    by_count = resample_accuracies(np.array([13]), np.array([20]), 40_000, rng)[:, 0]
    # Same distribution up to the scaling: equal probabilities of all values, within four standard errors.
    for value in range(21):
        stretched = 13 / 20 + (20 / 19) ** 0.5 * (value - 13) / 20
        a, b = np.isclose(by_index, value / 20).mean(), np.isclose(by_count, stretched).mean()
        assert abs(a - b) < 4 * np.sqrt(2 * max(a, b, 1e-4) / 40_000)


def test_bootstrap_interval_of_a_group_mean_covers_the_truth():
    rng = np.random.default_rng(1)
    truth, support, trials = np.array([0.9, 0.6, 0.4]), np.array([80, 60, 100]), 400
    covered = 0
    for _ in range(trials):
        right = rng.binomial(support, truth)
        interval = percentile_interval(resample_accuracies(right, support, 400, rng).mean(axis=1), within=(0, 1))
        covered += interval.low <= truth.mean() <= interval.high
    assert 0.91 < covered / trials < 0.985


@pytest.mark.parametrize("each", [1, 2, 3])
def test_intervals_cover_the_truth_with_few_samples_per_class(each):
    rng = np.random.default_rng(each)
    truth, support, trials = rng.uniform(0.3, 0.9, 100), np.full(100, each), 300
    covered = 0
    for _ in range(trials):
        right = rng.binomial(support, truth)
        interval = percentile_interval(resample_accuracies(right, support, 300, rng).mean(axis=1), within=(0, 1))
        covered += interval.low <= truth.mean() <= interval.high
    assert covered / trials > 0.91


def test_agresti_min_covers_the_change_of_a_class():
    """By a loop over the four cells; 30 samples, many changes."""
    rng = np.random.default_rng(0)
    probabilities = np.array([0.2, 0.25, 0.1, 0.45])  # both wrong, fixed, broken, both right
    covered = 0
    for _ in range(500):
        _, fixed, broken, _ = rng.multinomial(30, probabilities)
        low, high = agresti_min_bounds(*(np.array([n]) for n in (fixed - broken, fixed + broken, 30)))
        more = [fixed + 0.5, broken + 0.5]
        mean = (more[0] - more[1]) / 32
        half = 1.959964 * np.sqrt((sum(more) - 32 * mean**2) / 32**2)
        assert (low[0], high[0]) == pytest.approx((mean - half, mean + half))
        covered += low[0] <= 0.15 <= high[0]
    assert 0.92 < covered / 500 < 0.985


def test_agresti_min_of_one_sample_is_wide():
    low, high = agresti_min_bounds(np.array([1.0]), np.array([1.0]), np.array([1]))
    assert low[0] < -0.4
    assert high[0] == 1


def test_centered_interval_contains_the_estimate():
    values = np.random.default_rng(2).normal(5, 1, 10_000)
    interval = centered_interval(values, 3.0)
    assert interval.low == pytest.approx(3 - 1.96, abs=0.06)
    assert interval.high == pytest.approx(3 + 1.96, abs=0.06)
    assert centered_interval(values, 0.5).low == 0
