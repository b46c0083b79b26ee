"""The test of a drop between different samples against enumeration of all outcomes, and its size at the limit."""

import numpy as np
import pytest
from scipy import optimize, stats

from classgap.audit.stats.unpaired_drop_test import (
    _approximate_power,
    _exact_power,
    unpaired_bounds,
    unpaired_detectable,
    unpaired_estimate,
    unpaired_p_values,
    unpaired_statistic,
)

TABLES = [
    (18, 20, 9, 15, 0.0),
    (18, 20, 9, 15, 0.1),
    (12, 12, 7, 10, 0.03),
    (4, 15, 6, 20, 0.05),
    (40, 50, 12, 30, 0.3),
]


def outcomes(n, m):
    return np.array([(a, b) for a in range(n + 1) for b in range(m + 1)]).T


def chances(n, m, q, drop):
    a, b = outcomes(n, m)
    return stats.binom.pmf(a, n, min(q + drop, 1.0)) * stats.binom.pmf(b, m, q)


@pytest.mark.parametrize(("a", "n", "b", "m", "drop"), TABLES)
def test_estimate_maximizes_the_likelihood(a, n, b, m, drop):
    def loss(q):
        return -stats.binom.logpmf(a, n, q + drop) - stats.binom.logpmf(b, m, q)

    best = optimize.minimize_scalar(loss, bounds=(1e-9, 1 - drop - 1e-9), method="bounded", options={"xatol": 1e-9}).x
    assert unpaired_estimate(a, n, b, m, drop) == pytest.approx(best, abs=2e-6)


def test_statistic_at_a_limit_of_zero_is_the_pooled_z():
    pooled = (40 + 20) / (50 + 40)
    expected = (40 / 50 - 20 / 40) / np.sqrt(pooled * (1 - pooled) * (1 / 50 + 1 / 40))
    assert unpaired_statistic(40, 50, 20, 40, 0.0) == pytest.approx(expected)
    assert unpaired_statistic(50, 50, 40, 40, 0.0) == 0
    assert unpaired_statistic(0, 50, 0, 40, 0.0) == 0


@pytest.mark.parametrize(("a", "n", "b", "m", "drop"), TABLES)
def test_p_value_against_all_outcomes(a, n, b, m, drop):
    beyond = unpaired_statistic(*_rows(n, m), drop) >= unpaired_statistic(a, n, b, m, drop) - 1e-9
    estimate = float(unpaired_estimate(a, n, b, m, drop))
    error = np.sqrt(estimate * (1 - estimate) / (n + m))
    expected = max(
        chances(n, m, np.clip(estimate + shift * error, 0, 1 - drop), drop)[beyond].sum() for shift in (-1, 0, 1)
    )
    assert unpaired_p_values([a], [n], [b], [m], drop)[0] == pytest.approx(expected, rel=1e-6)


def _rows(n, m):
    a, b = outcomes(n, m)
    return a, np.full(len(a), n), b, np.full(len(a), m)


@pytest.mark.parametrize(("n", "m"), [(5, 5), (20, 20), (35, 15), (15, 35)])
@pytest.mark.parametrize("drop", [0.0, 0.03, 0.1])
def test_size_at_the_limit_is_at_most_the_level(n, m, drop):
    p = unpaired_p_values(*_rows(n, m), drop)
    rates = np.concatenate([[0.0, 1e-3], np.linspace(0.01, 1 - drop - 1e-9, 40)])
    for alpha in (0.05, 0.005, 0.00005):
        sizes = [chances(n, m, q, drop)[p <= alpha].sum() for q in rates]
        assert max(sizes) <= 1.06 * alpha
        assert np.mean(sizes) <= alpha


def test_bound_is_where_significance_ends():
    a, b, n, m = np.array([45, 40, 50, 10]), np.array([10, 19, 31, 15]), np.full(4, 50), np.full(4, 40)
    bounds = unpaired_bounds(a, n, b, m, 0.01)
    assert (bounds[[0, 2]] > 0).all()
    assert bounds[3] == 0
    shown = bounds > 0
    rows = a[shown], n[shown], b[shown], m[shown]
    assert (unpaired_p_values(*rows, bounds[shown]) <= 0.01).all()
    assert (unpaired_p_values(*rows, bounds[shown] + 2e-4) > 0.01).all()


def test_detectable_drop_is_found_as_often_as_it_says():
    n, accuracy, limit, alpha = 35, 0.8, 0.03, 0.02
    (drop,) = unpaired_detectable(np.array([n]), np.array([n]), accuracy, limit, alpha)
    significant = unpaired_p_values(*_rows(n, n), limit) <= alpha
    a, b = outcomes(n, n)
    power = (stats.binom.pmf(a, n, accuracy) * stats.binom.pmf(b, n, accuracy - drop))[significant].sum()
    assert power == pytest.approx(0.8, abs=0.005)
    exact, approximate = _exact_power(150, 0.7, 0.03, 0.01), _approximate_power(150, 0.7, 0.03, 0.01)
    assert approximate(0.2) == pytest.approx(exact(0.2), abs=0.03)
