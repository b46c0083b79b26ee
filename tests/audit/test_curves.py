import numpy as np
import pytest
from scipy import stats

from classgap.audit.stats import curves
from classgap.audit.stats.curves import density, ecdf, group_means


def test_density_agrees_with_scipy_at_the_same_bandwidth(monkeypatch):
    monkeypatch.setattr(curves, "BLOCK_ELEMENTS", 1000)
    values = np.random.default_rng(0).normal(3, 2, 70)
    x, y = density(values)
    quartiles = np.quantile(values, [0.25, 0.75])
    bandwidth = 0.9 * min(values.std(ddof=1), (quartiles[1] - quartiles[0]) / 1.34) * 70**-0.2
    np.testing.assert_allclose(y, stats.gaussian_kde(values, bandwidth / values.std(ddof=1))(x), rtol=1e-6)
    assert x[0] < values.min() < values.max() < x[-1]


def test_a_density_with_a_lower_end_keeps_its_mass_above_it():
    values = np.random.default_rng(1).exponential(size=400)
    x, y = density(values, lower=0.0)
    assert x[0] == 0
    assert y.sum() * (x[1] - x[0]) == pytest.approx(1, abs=0.02)
    assert y[0] > 0.5  # without reflection, half of it
    assert density(values, np.array([-1.0, 0.5]), lower=0.0)[1][0] == 0
    with pytest.raises(ValueError, match="at least lower"):
        density([-1.0, 1.0], lower=0.0)


@pytest.mark.parametrize("values", [[2.0], [3.0, 3.0, 3.0], [0.0, 0.0]])
def test_equal_values_give_a_peak(values):
    x, y = density(values)
    assert x[y.argmax()] == pytest.approx(values[0], abs=1e-2)
    assert y.sum() * (x[1] - x[0]) == pytest.approx(1, abs=0.02)


def test_ecdf_is_that_of_scipy():
    values = np.random.default_rng(2).integers(0, 9, 40).astype(float)
    reference = stats.ecdf(values).cdf
    x, y = ecdf(values)
    np.testing.assert_array_equal(x, reference.quantiles)
    np.testing.assert_allclose(y, reference.probabilities)


def test_group_means_skip_unknown_values():
    rows = [[1.0, None, 4.0, 2.0], [None, None, 6.0, 0.0]]
    found = group_means(rows, {"a": [0, 1], "b": [2, 3], "c": [0, 3]})
    for name, members in {"a": [0, 1], "b": [2, 3], "c": [0, 3]}.items():
        for row, mean in zip(rows, found[name], strict=True):
            known = [row[k] for k in members if row[k] is not None]
            assert np.isnan(mean) if not known else mean == pytest.approx(sum(known) / len(known))


@pytest.mark.parametrize("values", [[], [1.0, float("nan")]])
def test_missing_values_are_rejected(values):
    with pytest.raises(ValueError, match="values must"):
        ecdf(values)
