import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.stats import binom

from classgap.theory.lmdl import layer_divergence, pair_bound, sphere_bound

few = settings(max_examples=25, deadline=None, derandomize=True, database=None)


def problem(seed: int, rows: int = 30, dim: int = 2):
    rng = np.random.default_rng(seed)
    features = torch.from_numpy(rng.normal(size=(rows, dim)) * rng.uniform(0.1, 3))
    labels = torch.from_numpy(rng.integers(0, 3, rows))
    labels[:2] = torch.tensor([0, 2])
    centroids, weight = torch.from_numpy(rng.normal(size=(2, 3, dim)))
    return features, labels, centroids, weight, torch.from_numpy(rng.normal(size=3))


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("any_features", [False, True])
def test_theorem_5_2_term_by_term(with_bias, any_features):
    features, labels, centroids, weight, bias = problem(0)
    bias = bias if with_bias else torch.zeros(3)
    bound = pair_bound(
        features,
        labels,
        centroids,
        weight,
        bias if with_bias else None,
        pair=(2, 0),
        width=1.5,
        delta=0.1,
        any_features=any_features,
    )
    rows = [i for i in range(30) if labels[i] in (0, 2)]
    ramps, reach = [], 0.0
    for i in rows:
        h = (features[i] @ (weight[2] - weight[0]) + bias[2] - bias[0]).item() * (1 if labels[i] == 2 else -1)
        ramps.append(1 if h <= 0 else 0 if h >= 1.5 else 1 - h / 1.5)  # Eq. (5.1)
        reach = max(reach, min((features[i] - centroids[k]).norm().item() for k in (0, 2)))
    assert bound.risk.item() == pytest.approx(np.mean(ramps))
    gamma = math.hypot((weight[2] - weight[0]).norm().item(), (bias[2] - bias[0]).item())
    largest = max(centroids[k].norm().item() for k in (0, 2))
    complexity = 2 * gamma * math.sqrt((reach + largest) ** 2 + 1) / 1.5
    assert bound.complexity.item() == pytest.approx(complexity / (1 if any_features else math.sqrt(len(rows))))
    assert bound.low_order.item() == pytest.approx(3 * math.sqrt(math.log(20) / (2 * len(rows))))


@few
@given(seed=st.integers(0, 10_000))
def test_theorem_d_6_bounds_the_complexity_of_the_heads(seed):
    """The supremum over ‖(w, b)‖ ≤ Γ is a norm, so the left side is exact: all signs of eight samples are tried."""
    features, labels, centroids, weight, bias = problem(seed, rows=8)
    labels[:] = torch.arange(8) % 2
    bound = pair_bound(features, labels, centroids, weight, bias, pair=(0, 1), width=0.4)
    wide = np.concatenate([features.numpy(), np.ones((8, 1))], axis=1)
    signs = np.array(list(itertools.product([-1, 1], repeat=8)))
    gamma = math.hypot((weight[0] - weight[1]).norm().item(), (bias[0] - bias[1]).item())
    exact = gamma * np.linalg.norm(signs @ wide, axis=1).mean() / 8
    assert 2 / 0.4 * exact <= bound.complexity.item()


def test_theorem_d_6_is_nearly_tight_for_free_features():
    """Centroids at ±R on a line: f = σ(R + r) is allowed, and the complexity stays near Γ(R + r) for any N."""
    radius, center, count = 0.5, 2.0, 12
    exact = 0.0  # f_i = σ_i (R + r) and b = 0 against the sum of signs, both in the supremum over (w, b)
    for positive in range(count + 1):
        sum_of_signs = 2 * positive - count
        exact += binom.pmf(positive, count, 0.5) * math.hypot(count * (center + radius), sum_of_signs) / count
    features = torch.tensor([[center + radius], [-center - radius]], dtype=torch.float64).repeat(6, 1)
    labels, weight = torch.arange(2).repeat(6), torch.tensor([[0.5], [-0.5]])  # Γ = 1
    centroids = torch.tensor([[center], [-center]])
    bound = pair_bound(features, labels, centroids, weight, pair=(0, 1), width=2.0, any_features=True)
    assert exact <= bound.complexity.item() <= 1.1 * exact


@few
@given(seed=st.integers(0, 10_000), width=st.floats(0.01, 1000))
def test_eq_5_3_is_never_below_one(seed, width):
    features, labels, centroids, weight, bias = problem(seed)
    bound = pair_bound(features, labels, centroids, weight, bias, pair=(0, 1), width=width, any_features=True)
    assert (bound.risk + bound.complexity).item() >= 1 - 1e-12
    assert bound.vacuous


def test_eq_5_2_holds_and_is_informative_with_many_samples():
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(2).repeat(5000)
    features = torch.rand(10_000, 1, generator=generator) * 2 - 1 + 3.0 * (1 - 2 * labels)[:, None]
    bound = pair_bound(
        features, labels, torch.tensor([[3.0], [-3.0]]), torch.tensor([[1.0], [-1.0]]), pair=(0, 1), width=2.0
    )
    assert 0 <= bound.total < 0.2  # the true error is 0


def test_theorem_5_3_term_by_term():
    features, _, centroids, _, _ = problem(1)
    bound = sphere_bound(features, centroids[0], radius=1.2, width=0.7, delta=0.1)
    ramps = []
    for q in features:
        h = 1.2**2 - (q - centroids[0]).square().sum().item()
        ramps.append(1 if h <= 0 else 0 if h >= 0.7 else 1 - h / 0.7)
    longest, center = max(q.norm().item() for q in features), centroids[0].norm().item()
    assert bound.risk.item() == pytest.approx(np.mean(ramps))
    expected = 2 / 0.7 * (longest**2 + 2 * center * longest + center**2 / math.sqrt(30))
    assert bound.complexity.item() == pytest.approx(expected)
    assert bound.low_order.item() == pytest.approx(3 * math.sqrt(math.log(20) / 60))


@few
@given(longest=st.floats(0.1, 5), center=st.floats(0.1, 5), count=st.integers(1, 40))
def test_theorem_d_7_bounds_the_complexity_of_the_spheres(longest, center, count):
    """For free features the supremum has one unknown, t = ‖m‖: a +1 wants f near m, a -1 wants it far away."""
    t = np.linspace(0, center, 400)
    exact = 0.0
    for negative in range(count + 1):
        best = (negative * (t + longest) ** 2 - (count - negative) * np.clip(t - longest, 0, None) ** 2).max()
        exact += binom.pmf(negative, count, 0.5) * best / count
    features = torch.full((count, 1), longest, dtype=torch.float64)
    bound = sphere_bound(features, torch.tensor([center]), radius=1.0, width=2.0)  # 2/ρ = 1
    assert exact <= bound.complexity.item() * (1 + 1e-9)


@few
@given(seed=st.integers(0, 10_000), part=st.floats(0.05, 0.99), width=st.floats(0.01, 1000))
def test_eq_5_4_is_never_below_one_for_a_mean_and_a_sphere_that_is_not_everything(seed, part, width):
    features, *_ = problem(seed)
    centroid = features.mean(0)
    radius = part * (features.norm(dim=1).max() + centroid.norm()).item()
    assert sphere_bound(features, centroid, radius=radius, width=width).vacuous


def test_eq_5_4_can_say_something_about_a_huge_sphere():
    features = torch.ones(100_000, 1) * 0.01
    assert not sphere_bound(features, torch.zeros(1), radius=1.0, width=0.9).vacuous


@few
@given(seed=st.integers(0, 10_000), symbols=st.integers(2, 12), sharpness=st.floats(0.05, 2))
def test_theorem_6_3_bounds_the_divergence_in_an_earlier_layer(seed, symbols, sharpness):
    """An earlier layer with finitely many values, mapped into one sphere, the other, or neither."""
    rng = np.random.default_rng(seed)
    place = rng.integers(0, 3, symbols)  # 0 and 1: in the sphere of that class; 2: outside both
    place[:2] = [0, 1]
    counts = [
        rng.multinomial(200, rng.dirichlet(np.where(place == y, 1 / sharpness, sharpness / symbols) + 0.1))
        for y in (0, 1)
    ]
    values = [np.repeat(np.arange(symbols), count) for count in counts]
    features = torch.tensor([[0.0], [10.0], [5.0]])[torch.from_numpy(place[np.concatenate(values)])]
    labels = torch.arange(2).repeat_interleave(200)
    result = layer_divergence(features, labels, torch.tensor([[0.0], [10.0]]), radius=1.0)
    tau = min(counts[y][place == y].sum() / 200 for y in (0, 1))
    assert result.tau.item() == pytest.approx(tau)
    assert result.disjoint
    assert result.divergence.item() == pytest.approx(max(2 * tau - 1, 0) ** 2 / 2, abs=1e-6)
    divergence = jensenshannon(counts[0] / 200, counts[1] / 200) ** 2  # scipy gives its root, in nats
    assert result.divergence.item() <= divergence + 1e-6


def test_theorem_6_3_needs_disjoint_spheres():
    """Two classes with the same distribution, both all within their spheres, which coincide: no divergence at all."""
    features, labels = torch.zeros(4, 1), torch.tensor([0, 0, 1, 1])
    result = layer_divergence(features, labels, torch.zeros(2, 1), radius=1.0)
    assert result.tau == 1
    assert not result.disjoint
    assert result.divergence == 0


def test_classes_without_samples_do_not_enter():
    features, labels = torch.tensor([[0.0], [5.0]]), torch.tensor([0, 2])
    centroids = torch.tensor([[0.0], [torch.nan], [5.0]])
    result = layer_divergence(features, labels, centroids, radius=1.0)
    assert math.isnan(result.inside_K[1])
    assert result.divergence == 0.5


def test_wrong_inputs_are_rejected():
    features, labels, centroids, weight, _ = problem(2)
    with pytest.raises(ValueError, match="pair must be two different classes"):
        pair_bound(features, labels, centroids, weight, pair=(1, 1), width=1.0)
    with pytest.raises(ValueError, match="pair must hold classes from 0 to 2, got 3"):
        pair_bound(features, labels, centroids, weight, pair=(0, 3), width=1.0)
    with pytest.raises(ValueError, match="width must be a finite number > 0"):
        pair_bound(features, labels, centroids, weight, pair=(0, 1), width=0.0)
    with pytest.raises(ValueError, match="no sample of the classes 0 and 1"):
        pair_bound(features, torch.full_like(labels, 2), centroids, weight, pair=(0, 1), width=1.0)
    with pytest.raises(ValueError, match="at least one row"):
        sphere_bound(features[:0], centroids[0], radius=1.0, width=1.0)
