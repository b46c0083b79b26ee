"""The test of a drop against enumeration of all outcomes, and its size at the boundary."""

import numpy as np
import pytest
from scipy import optimize, stats

from classgap.audit.stats.drop_test import (
    _approximate_drop,
    _detectable_drop,
    detectable_drops,
    drop_bounds,
    drop_p_values,
    restricted_estimate,
    score_statistic,
)


def outcomes(n):
    return np.array([(b, c) for b in range(n + 1) for c in range(n + 1 - b)]).T


def chances(n, q, drop):
    b, c = outcomes(n)
    return stats.multinomial.pmf(np.stack([b, c, n - b - c], axis=1), n, [q + drop, q, max(0.0, 1 - 2 * q - drop)])


@pytest.mark.parametrize(
    ("b", "c", "n", "drop"), [(12, 3, 50, 0.0), (12, 3, 50, 0.1), (4, 0, 20, 0.03), (7, 7, 30, 0.2)]
)
def test_restricted_estimate_maximizes_the_likelihood(b, c, n, drop):
    def loss(q):
        return -stats.multinomial.logpmf([b, c, n - b - c], n, [q + drop, q, 1 - 2 * q - drop])

    best = optimize.minimize_scalar(loss, bounds=(1e-9, (1 - drop) / 2 - 1e-9), method="bounded").x
    assert restricted_estimate(b, c, n, drop) == pytest.approx(best, abs=2e-5)


def test_statistic_at_a_limit_of_zero_is_that_of_mcnemar():
    assert score_statistic(12, 3, 50, 0.0) == pytest.approx((12 - 3) / np.sqrt(12 + 3))
    assert score_statistic(0, 0, 50, 0.0) == 0


@pytest.mark.parametrize(
    ("b", "c", "n", "drop"), [(9, 2, 25, 0.0), (9, 2, 25, 0.1), (3, 0, 12, 0.03), (1, 4, 15, 0.05)]
)
def test_p_value_against_all_outcomes(b, c, n, drop):
    every = score_statistic(*outcomes(n), n, drop)
    estimate = float(restricted_estimate(b, c, n, drop))
    error = np.sqrt(estimate * (1 - estimate) / n)
    beyond = every >= score_statistic(b, c, n, drop) - 1e-9
    expected = max(
        chances(n, np.clip(estimate + shift * error, 0, (1 - drop) / 2), drop)[beyond].sum() for shift in (-1, 0, 1)
    )
    assert drop_p_values([b], [c], [n], drop)[0] == pytest.approx(expected, rel=1e-6)


def test_no_changed_sample_is_no_evidence():
    assert drop_p_values([0], [0], [50], 0.0)[0] == 1


@pytest.mark.parametrize("n", [5, 20, 50])
@pytest.mark.parametrize("drop", [0.0, 0.03, 0.1])
@pytest.mark.parametrize("alpha", [0.05, 0.005, 0.00005])
def test_size_at_the_limit_is_at_most_the_level(n, drop, alpha):
    b, c = outcomes(n)
    significant = drop_p_values(b, c, np.full(len(b), n), drop) <= alpha
    rates = np.concatenate([[0.0, 1e-3], np.linspace(0.01, (1 - drop) / 2 - 1e-9, 25)])
    sizes = [chances(n, q, drop)[significant].sum() for q in rates]
    assert max(sizes) <= 1.05 * alpha
    assert np.mean(sizes) <= alpha


def test_bound_is_where_significance_ends():
    b, c, n = np.array([30, 12, 40, 5, 2]), np.array([1, 3, 0, 5, 9]), np.full(5, 50)
    bounds = drop_bounds(b, c, n, 0.01)
    assert bounds[3:].tolist() == [0, 0]
    shown = bounds > 0
    assert shown[[0, 2]].all()
    assert (drop_p_values(b[shown], c[shown], n[shown], bounds[shown]) <= 0.01).all()
    assert (drop_p_values(b[shown], c[shown], n[shown], bounds[shown] + 2e-4) > 0.01).all()
    assert (bounds <= np.maximum(b - c, 0) / n).all()


@pytest.mark.parametrize(("n", "rate", "limit", "alpha"), [(50, 0.05, 0.03, 0.0005), (200, 0.02, 0.0, 0.01)])
def test_detectable_drop_is_found_in_four_of_five_simulations(n, rate, limit, alpha):
    drop = float(detectable_drops([n], rate, limit, alpha)[0])
    drawn = np.random.default_rng(0).multinomial(n, [rate + drop, rate, 1 - 2 * rate - drop], size=3000)
    found = drop_p_values(drawn[:, 0], drawn[:, 1], np.full(3000, n), limit) <= alpha
    assert found.mean() == pytest.approx(0.8, abs=0.03)


def test_detectable_drops_shrink_with_samples_and_end_with_few():
    drops = detectable_drops(np.arange(1, 120), 0.03, 0.0, 0.01)
    known = ~np.isnan(drops)
    assert not known[:4].any()  # four broken samples of four: p = 1/16
    assert (np.diff(drops[known]) <= 0.02).all()
    assert drops[-1] < 0.2
    assert np.isnan(detectable_drops([2, 3], 0.03, 0.0, 0.001)).all()


def test_large_classes_use_an_approximation_that_agrees():
    exact, approximate = _detectable_drop(400, 0.05, 0.01, 0.001, 0.8), _approximate_drop(400, 0.05, 0.01, 0.001, 0.8)
    assert approximate == pytest.approx(exact, rel=0.06)
