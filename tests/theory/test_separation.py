import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist, pdist

from classgap.functional import boundary_shortfall, compactness, signed_boundary_distance
from classgap.theory import hard_pull as hard_pull_module
from classgap.theory import separation as separation_module
from classgap.theory.lmdl import class_dispersion, class_margin, separation

few = settings(max_examples=25, deadline=None, derandomize=True, database=None)


def problem(seed: int, classes: int = 4, dim: int = 3, rows: int = 40):
    rng = np.random.default_rng(seed)
    features = torch.from_numpy(rng.normal(size=(rows, dim)))
    labels = torch.from_numpy(rng.integers(0, classes, rows))
    return (
        features,
        labels,
        torch.from_numpy(rng.normal(size=(classes, dim))),
        torch.from_numpy(rng.normal(size=classes)),
    )


def separated(seed: int, classes: int, dim: int, radius: float, distance: float):
    """Random centroids, the head of the nearest centroid, and samples within the radius; scaled to zero losses."""
    rng = np.random.default_rng(seed)
    centroids = rng.normal(size=(classes, dim))
    centroids *= 2 * distance / pdist(centroids).min() * rng.uniform(1, 1.5)
    labels = rng.integers(0, classes, 30)
    labels[:classes] = np.arange(classes)
    steps = rng.normal(size=(30, dim))
    steps *= radius * rng.random((30, 1)) ** 0.1 / np.linalg.norm(steps, axis=1, keepdims=True) * (1 - 1e-9)
    weight, bias = 2 * centroids, -(centroids**2).sum(axis=1)  # -‖q - m‖² up to a constant: boundaries halfway
    return [torch.from_numpy(x) for x in (centroids[labels] + steps, labels, centroids, weight, bias)]


@few
@given(
    seed=st.integers(0, 10_000),
    classes=st.integers(2, 5),
    dim=st.integers(1, 4),
    radius=st.floats(0.1, 2),
    ratio=st.floats(0.3, 5),
)
def test_propositions_4_1_and_4_2_hold_where_both_losses_are_zero(seed, classes, dim, radius, ratio):
    distance = ratio * radius
    features, labels, centroids, weight, bias = separated(seed, classes, dim, radius, distance)
    assert compactness(features, centroids[labels], radius).max() == 0
    shortfall = boundary_shortfall(centroids, torch.arange(classes), weight, bias, distance=distance * (1 - 1e-9))
    assert shortfall.max() == 0
    result = separation(features, labels, centroids, weight, bias, radius=radius, distance=distance * (1 - 1e-9))
    assert result.compact_loss == 0
    assert result.margin_loss == 0
    assert result.largest_dispersion == 2 * radius
    assert result.smallest_margin == pytest.approx(max(distance - radius, 0), abs=1e-8)
    assert result.ordered == (distance * (1 - 1e-9) > 2 * radius)

    widest = class_dispersion(features, labels, classes).max().item()
    assert widest <= result.largest_dispersion + 1e-9  # Proposition 4.1
    for signed in (False, True):
        if distance > radius:
            margin = class_margin(features, labels, weight, bias, signed=signed).min().item()
            assert margin >= result.smallest_margin - 1e-9  # Proposition 4.2, part 1
    between = cdist(features, features)[(labels[:, None] != labels).numpy()].min()
    assert between >= result.smallest_gap - 1e-9
    if result.ordered:
        assert between > widest  # Proposition 4.2, part 2


def test_losses_match_eq_4_4_and_4_5_and_guarantee_nothing_unless_zero():
    features, labels, weight, bias = problem(0)
    labels[labels == 3] = 2
    centroids = torch.stack([features[labels == k].mean(0) for k in range(3)] + [torch.full((3,), torch.nan)])
    result = separation(features, labels, centroids, weight, bias, radius=0.5, distance=1.0)
    compact, margin = [], []
    for k in range(3):
        away = (features[labels == k] - centroids[k]).norm(dim=1)
        compact.append(np.mean([max(a - 0.5, 0) ** 2 for a in away.tolist()]))
        scores = weight @ centroids[k] + bias
        signed = [((scores[k] - scores[i]) / (weight[k] - weight[i]).norm()).item() for i in range(4) if i != k]
        margin.append(max(max(1.0 - s, 0) for s in signed))
    assert result.compact_loss.item() == pytest.approx(np.mean(compact))
    assert result.margin_loss.item() == pytest.approx(np.mean(margin))
    assert (result.largest_dispersion, result.smallest_margin, result.smallest_gap) == (math.inf, 0, 0)
    assert not result.ordered


def test_two_equal_rows_of_the_head_void_the_order_of_distances():
    """Classes 0 and 1 share a row and a place: no boundary, so no loss between them, and no distance either."""
    features, labels = torch.tensor([[5.0], [5.0], [-5.0]]), torch.tensor([0, 1, 2])
    weight = torch.tensor([[1.0], [1.0], [-1.0]])
    result = separation(features, labels, features, weight, radius=0.5, distance=4.0)
    assert result.margin_loss == 0
    assert result.smallest_margin == 3.5
    assert result.smallest_gap == 0
    assert not result.ordered


@few
@given(seed=st.integers(0, 10_000), classes=st.integers(1, 6), dim=st.integers(1, 4))
def test_dispersion_equals_scipys_largest_distance(seed, classes, dim):
    features, labels, _, _ = problem(seed, classes, dim, rows=20)
    labels[0] = -1
    got = class_dispersion(features, labels, classes)
    for k in range(classes):
        points = features[labels == k].numpy()
        if len(points) == 0:
            assert math.isnan(got[k])
        else:
            assert got[k].item() == pytest.approx(pdist(points).max() if len(points) > 1 else 0)


def test_dispersion_of_close_points_far_from_the_origin():
    features = torch.tensor([[1e4, 0.0], [1e4, 0.25], [1e4, 1.0]])
    assert class_dispersion(features, torch.zeros(3, dtype=torch.long), 1).item() == 1


@few
@given(seed=st.integers(0, 10_000), classes=st.integers(2, 6), signed=st.booleans(), with_bias=st.booleans())
def test_class_margin_is_the_smallest_boundary_distance_over_the_class(seed, classes, signed, with_bias):
    features, labels, weight, bias = problem(seed, classes)
    labels[labels == 1], labels[0] = 0, -1
    bias = bias if with_bias else None
    kept = labels >= 0
    distances = signed_boundary_distance(features[kept], labels[kept], weight, bias)
    distances = (distances if signed else distances.abs()).amin(dim=1)
    got = class_margin(features, labels, weight, bias, signed=signed)
    for k in range(classes):
        own = distances[labels[kept] == k]
        assert (math.isnan(got[k]) and not len(own)) or got[k].item() == pytest.approx(own.min().item())


def test_blocks_change_nothing(monkeypatch):
    features, labels, weight, bias = problem(7, classes=5)
    whole = class_margin(features, labels, weight, bias), class_dispersion(features, labels, 5)
    monkeypatch.setattr(separation_module, "BLOCK_ROWS", 3)
    monkeypatch.setattr(hard_pull_module, "BLOCK_ROWS", 3)
    monkeypatch.setattr(separation_module, "BLOCK_CLASSES", 2)
    torch.testing.assert_close(class_margin(features, labels, weight, bias), whole[0])
    torch.testing.assert_close(class_dispersion(features, labels, 5), whole[1])


def test_a_head_with_one_class_has_no_boundary():
    margin = class_margin(torch.ones(2, 1), torch.zeros(2, dtype=torch.long), torch.ones(1, 1))
    assert margin.tolist() == [math.inf]


def test_the_printed_margin_counts_a_sample_far_on_the_wrong_side_as_far():
    features, labels, weight = torch.tensor([[-9.0]]), torch.tensor([0]), torch.tensor([[1.0], [-1.0]])
    assert class_margin(features, labels, weight)[0] == 9
    assert class_margin(features, labels, weight, signed=True)[0] == -9


def test_tight_classes_too_close_to_their_boundary_keep_the_promise_of_proposition_4_1_only():
    features, labels, weight = torch.tensor([[1.0], [-1.0]]), torch.tensor([0, 1]), torch.tensor([[1.0], [-1.0]])
    result = separation(features, labels, features, weight, radius=0.5, distance=1.5)
    assert result.margin_loss == 0.5
    assert (result.largest_dispersion, result.smallest_margin, result.smallest_gap) == (1.0, 0, 0)
