"""Rank correlation against scipy."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from classgap.audit.rank_correlation import rank_correlation


@pytest.mark.parametrize("classes", [3, 4, 20, 300])
def test_agrees_with_scipy_with_ties_and_gaps(classes):
    rng = np.random.default_rng(classes)
    x, y = rng.normal(size=classes), rng.integers(0, 6, classes) / 5
    got, expected = rank_correlation(np.append(x, np.nan), np.append(y, 1.0)), spearmanr(x, y)
    assert got.rho == pytest.approx(expected.statistic)
    assert got.p_value == pytest.approx(expected.pvalue)
    assert got.classes == classes


def test_nothing_to_correlate():
    assert rank_correlation(np.array([1.0, 2.0]), np.array([1.0, 2.0])) is None
    assert rank_correlation(np.ones(5), np.arange(5.0)) is None
