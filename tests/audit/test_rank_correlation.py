"""Rank correlation against scipy."""

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import spearmanr

from classgap.audit.stats.rank_correlation import rank_correlation


@pytest.mark.parametrize("classes", [9, 20, 300])
def test_agrees_with_scipy_with_ties_and_gaps(classes):
    rng = np.random.default_rng(classes)
    x, y = rng.normal(size=classes), rng.integers(0, 6, classes) / 5
    got, expected = rank_correlation(np.append(x, np.nan), np.append(y, 1.0)), spearmanr(x, y)
    assert got.rho == pytest.approx(expected.statistic)
    assert got.p_value == pytest.approx(expected.pvalue)
    assert got.classes == classes


@pytest.mark.parametrize("classes", [3, 4, 6])
def test_few_classes_use_all_permutations(classes):
    rng = np.random.default_rng(classes)
    x, y = rng.normal(size=classes), rng.integers(0, 3, classes) / 2
    got = rank_correlation(x, y)
    orders = [spearmanr(x, y[list(order)]).statistic for order in permutations(range(classes))]
    assert got.rho == pytest.approx(spearmanr(x, y).statistic)
    assert got.p_value == pytest.approx(np.mean(np.abs(orders) >= abs(got.rho) - 1e-9))


def test_perfect_correlation_has_a_small_p_value():
    assert 0 <= rank_correlation(np.arange(9.0), np.arange(9.0)).p_value < 1e-9


def test_nothing_to_correlate():
    assert rank_correlation(np.array([1.0, 2.0]), np.array([1.0, 2.0])) is None
    assert rank_correlation(np.ones(5), np.arange(5.0)) is None
