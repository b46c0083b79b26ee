"""Order of samples by class, and distributions within classes."""

import numpy as np
import pytest

from classgap.audit.metrics.class_order import ClassOrder, class_distributions
from classgap.audit.results import QUANTILE_LEVELS


def test_distributions_against_masks():
    rng = np.random.default_rng(0)
    labels, values = rng.integers(0, 4, 100), rng.normal(size=100)
    found = class_distributions(values, ClassOrder.from_labels(labels, 5))
    assert found[4] is None
    for k in range(4):
        own = values[labels == k]
        assert found[k].mean == pytest.approx(own.mean())
        assert found[k].std == pytest.approx(own.std())
        assert list(found[k].quantiles) == np.quantile(own, QUANTILE_LEVELS).tolist()
        assert found[k].median == pytest.approx(np.median(own))


def test_order_visits_every_sample_under_its_class():
    labels = np.random.default_rng(1).integers(0, 6, 50)
    labels[labels == 2] = 3
    order = ClassOrder.from_labels(labels, 7)
    rows = dict(order.rows())
    assert set(rows) == set(labels.tolist())
    for k, own in rows.items():
        np.testing.assert_array_equal(own, np.flatnonzero(labels == k))
    means = order.mean(labels.astype(float))
    assert np.isnan(means[[2, 6]]).all()
    assert all(means[k] == k for k in rows)
