import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from classgap.functional import group_by_class, pull
from classgap.theory.elm import generalization_bound, mean_pull, pull_bound

few = settings(max_examples=25, deadline=None, derandomize=True, database=None)


def sample(seed: int, classes: int, dim: int, scale: float, rows: int = 30):
    rng = np.random.default_rng(seed)
    features = torch.from_numpy(rng.normal(size=(rows, dim)) * scale)
    return features, torch.from_numpy(rng.integers(0, classes, rows)), torch.from_numpy(rng.uniform(0, 5, classes))


@few
@given(
    seed=st.integers(0, 10_000), classes=st.integers(1, 8), dim=st.integers(1, 5), scale=st.sampled_from([0, 0.1, 1, 5])
)
def test_proposition_1_bounds_the_pull_by_the_variance(seed, classes, dim, scale):
    features, labels, slack = sample(seed, classes, dim, scale)
    pull_N = pull(features, group_by_class(labels, classes), slack[labels])
    bound = pull_bound(features, labels, slack)
    for k in range(classes):
        points = features[labels == k].numpy()
        n = len(points)
        if n < 2:
            assert bound.total_K[k] == -math.inf
            continue
        assert bound.variance_K[k].item() == pytest.approx(2 * points.var(axis=0, ddof=1).sum())  # 2n/(n-1) V̂
        expected = 2 * points.var(axis=0, ddof=1).sum() - slack[k].item() + math.log(n - 1)
        assert bound.total_K[k].item() == pytest.approx(expected)
        assert expected <= pull_N[labels == k].mean().item() + 1e-9


def test_proposition_1_is_tight_for_far_pairs():
    features, labels = torch.tensor([[0.0], [10.0]], dtype=torch.float64), torch.tensor([0, 0])
    slack = torch.ones(1, dtype=torch.float64)
    assert pull_bound(features, labels, slack).total_K.item() == pytest.approx(99)
    assert mean_pull(features, labels, slack).item() == pytest.approx(99)


def test_the_sum_in_the_text_after_proposition_1_is_no_lower_bound():
    """2n/(n-1) Σ‖Φ - μ‖² - α + ln(n-1), with the sum where the mean belongs, exceeds the pull."""
    features, labels = torch.tensor([[0.0], [10.0]], dtype=torch.float64), torch.tensor([0, 0])
    with_sum = 2 * 2 / 1 * 50 - 1 + math.log(1)
    assert with_sum > mean_pull(features, labels, torch.ones(1)).item()


def test_mean_pull_equals_a_loop():
    features, labels, slack = sample(4, classes=3, dim=2, scale=1.0)
    labels[:3], labels[labels == 1] = -1, 0
    got = mean_pull(features, labels, slack)
    for k in (0, 2):
        rows = (labels == k).nonzero().flatten().tolist()
        terms = [
            math.log1p(sum(math.exp((features[i] - features[j]).square().sum() - slack[k]) for j in rows if j != i))
            for i in rows
        ]
        assert got[k].item() == pytest.approx(np.mean(terms))
    assert math.isnan(got[1])


def binary(seed: int, rows: int = 60, scale: float = 1.0):
    rng = np.random.default_rng(seed)
    labels = torch.from_numpy(rng.integers(0, 2, rows))
    labels[:4] = torch.tensor([0, 0, 1, 1])
    features = torch.from_numpy(rng.normal(size=(rows, 3)) * scale) + labels[:, None]
    weight = torch.from_numpy(rng.normal(size=3))
    return features @ weight + 0.3, features, labels, weight


def log_losses(scores, labels, shift):
    signs = 2 * labels.numpy() - 1
    return np.log1p(np.exp(-signs * (scores.numpy() + np.array(shift)[labels.numpy()])))


def test_proposition_2_term_by_term():
    scores, features, labels, weight = binary(0)
    prior, slack, shift = (0.8, 0.2), (2.0, 1.0), (0.5, 0.5)
    bound = generalization_bound(
        scores, features, labels, weight, prior=prior, slack=slack, shift=shift, loss_bound=12.0, delta=0.1
    )
    losses = log_losses(scores, labels, shift)
    counts = [(labels == y).sum().item() for y in (0, 1)]
    pulls = mean_pull(features, labels, torch.tensor(slack, dtype=torch.float64)).tolist()
    assert bound.risk.item() == pytest.approx(sum(prior[y] * losses[labels.numpy() == y].mean() for y in (0, 1)))
    inner = sum(prior[y] / counts[y] * (pulls[y] + slack[y]) for y in (0, 1))
    assert bound.pull.item() == pytest.approx(weight.norm().item() * math.sqrt(math.log(4 / 0.1) * inner))
    spread = sum(prior[y] / (counts[y] - 1) for y in (0, 1))
    assert bound.low_order.item() == pytest.approx(7 * 12.0 * math.log(4 / 0.1) / 3 * spread)
    assert bound.total.item() == pytest.approx((bound.risk + bound.pull + bound.low_order).item())


@few
@given(seed=st.integers(0, 10_000), scale=st.floats(0.05, 3), share=st.floats(0.05, 0.95), slack=st.floats(0, 4))
def test_the_pull_term_bounds_the_deviation_term_of_bennetts_inequality(seed, scale, share, slack):
    """V_n with the sample variance, divisor n - 1, that Maurer and Pontil's inequality is stated for."""
    scores, features, labels, weight = binary(seed, scale=scale)
    prior = (share, 1 - share)
    bound = generalization_bound(
        scores, features, labels, weight, prior=prior, slack=(slack, slack), loss_bound=1e3, delta=0.05
    )
    losses = log_losses(scores, labels, (0.0, 0.0))
    deviation = 0.0
    for y in (0, 1):
        own = losses[labels.numpy() == y]
        deviation += prior[y] * math.sqrt(2 * own.var(ddof=1) * math.log(4 / 0.05) / len(own))
    assert deviation <= bound.pull.item() + 1e-12


def test_the_bound_holds_for_a_fixed_scorer_in_every_draw():
    """Features uniform on [-1, 0] and [0, 1], f = 2Φ: the expected loss is an integral, and B = ln(1 + e^0)."""
    grid = (np.arange(10_000) + 0.5) / 10_000
    expected = np.log1p(np.exp(-2 * grid)).mean()
    for seed in range(20):
        rng = np.random.default_rng(seed)
        labels = torch.arange(2).repeat(100)
        features = torch.from_numpy(rng.random((200, 1))) * (2 * labels - 1)[:, None]
        bound = generalization_bound(
            2 * features[:, 0],
            features,
            labels,
            torch.tensor([2.0]),
            prior=(0.5, 0.5),
            slack=(1.0, 1.0),
            loss_bound=math.log(2),
        )
        assert expected <= bound.total.item()


def test_wrong_inputs_are_rejected():
    scores, features, labels, weight = binary(1)
    right = {"prior": (0.5, 0.5), "slack": (1.0, 1.0), "loss_bound": 50.0}
    with pytest.raises(ValueError, match="prior must be two positive numbers"):
        generalization_bound(scores, features, labels, weight, **(right | {"prior": (0.5, 0.6)}))
    with pytest.raises(ValueError, match="loss_bound must be at least the largest loss"):
        generalization_bound(scores, features, labels, weight, **(right | {"loss_bound": 0.01}))
    with pytest.raises(ValueError, match="two samples of each class"):
        generalization_bound(scores, features, torch.zeros_like(labels), weight, **right)
    with pytest.raises(ValueError, match="delta"):
        generalization_bound(scores, features, labels, weight, **right, delta=0.0)
