import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from classgap.theory.elm import loss_variances, mean_bound, mean_pull

few = settings(max_examples=25, deadline=None, derandomize=True, database=None)


def test_lemma_3_term_by_term():
    values = np.random.default_rng(0).uniform(0, 3, 50)
    bound = mean_bound(torch.from_numpy(values), upper=3.0, delta=0.1)
    assert bound.mean.item() == pytest.approx(values.mean())
    assert bound.deviation.item() == pytest.approx(math.sqrt(2 * values.var(ddof=1) * math.log(20) / 50))
    assert bound.low_order.item() == pytest.approx(7 * 3 * math.log(20) / (3 * 49))
    assert bound.total.item() == pytest.approx((bound.mean + bound.deviation + bound.low_order).item())


def test_lemma_3_fails_no_more_often_than_delta():
    """2000 samples of 30 rare events; the bound holds for at least 1 - δ of them, and the plain mean does not."""
    rng = np.random.default_rng(1)
    values = torch.from_numpy((rng.random((2000, 30)) < 0.2).astype(float))
    below = sum(mean_bound(row, upper=1.0, delta=0.2).total.item() < 0.2 for row in values) / 2000
    assert below <= 0.2
    assert (values.mean(dim=1) < 0.2).double().mean() > 0.3


@pytest.mark.parametrize(
    ("values", "match"), [([0.5], "at least two"), ([0.5, 2.0], "from 0 to"), ([-1.0, 0.0], "from 0")]
)
def test_values_outside_the_range_are_rejected(values, match):
    with pytest.raises(ValueError, match=match):
        mean_bound(torch.tensor(values), upper=1.0)


@few
@given(seed=st.integers(0, 10_000), dim=st.integers(1, 5), scale=st.sampled_from([0.1, 1.0, 10.0]))
def test_lemmas_4_and_5_order_the_variances(seed, dim, scale):
    rng = np.random.default_rng(seed)
    features, labels = rng.normal(size=(30, dim)) * scale, rng.integers(-1, 2, 30)
    labels[:2] = 0, 1
    weight, bias, shift = rng.normal(size=dim), 0.3, (0.5, -1.0)
    given_ = torch.from_numpy(features), torch.from_numpy(labels)
    found = loss_variances(*given_, torch.from_numpy(weight), bias, shift=shift)
    pull_K = mean_pull(*given_, torch.zeros(2))
    for k, sign in ((0, -1), (1, 1)):
        points = features[labels == k]
        scores = points @ weight + bias
        losses = np.log1p(np.exp(-sign * (scores + shift[k])))
        assert found.log_2[k].item() == pytest.approx(losses.var())
        assert found.linear_2[k].item() == pytest.approx(scores.var())
        trace = np.trace(np.atleast_2d(np.cov(points.T, ddof=0))) if len(points) > 1 else 0
        assert found.trace_2[k].item() == pytest.approx(weight @ weight * trace, abs=1e-9)
        assert found.log_2[k] <= found.linear_2[k] + 1e-9
        assert found.linear_2[k] <= found.trace_2[k] + 1e-9
        assert 2 * found.trace_2[k].item() <= (weight @ weight) * pull_K[k].item() + 1e-6  # Proposition 1, α = 0


def test_features_along_the_weights_are_tight():
    weight = torch.tensor([3.0, 4.0])
    features = torch.tensor([[-1.0], [2.0], [0.5], [3.0]]) * weight
    found = loss_variances(features, torch.tensor([0, 0, 1, 1]), weight)
    torch.testing.assert_close(found.linear_2, found.trace_2)


def test_a_class_without_samples_is_rejected():
    with pytest.raises(ValueError, match="none of class 1"):
        loss_variances(torch.ones(2, 1), torch.tensor([0, 0]), torch.ones(1))
