import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from classgap.theory import class_moments, class_sizes

few = settings(max_examples=25, deadline=None, derandomize=True, database=None)


def sample(seed: int, classes: int, dim: int, rows: int = 30) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rows, dim)) * rng.uniform(0.1, 3) + rng.normal(size=dim)
    return torch.from_numpy(features), torch.from_numpy(rng.integers(0, classes, rows))


@few
@given(seed=st.integers(0, 10_000), classes=st.integers(1, 6), dim=st.integers(1, 5))
def test_mr2_b2_pair_distance_is_twice_the_deviation_when_a_point_may_meet_itself(seed, classes, dim):
    features, labels = sample(seed, classes, dim)
    moments = class_moments(features, labels, classes)
    for label in range(classes):
        points = features[labels == label].numpy()
        n = len(points)
        if n < 2:
            continue
        ordered_pairs = 2 * pdist(points, "sqeuclidean").sum()
        assert moments.deviation_K[label] == pytest.approx(points.var(axis=0).sum())
        assert ordered_pairs / n**2 == pytest.approx(2 * moments.deviation_K[label].item())  # i = j counted
        assert ordered_pairs / (n * (n - 1)) == pytest.approx(moments.pair_distance_K[label].item())  # and not


@few
@given(seed=st.integers(0, 10_000), classes=st.integers(1, 6), dim=st.integers(1, 5))
def test_mr2_eq_55_mean_and_deviation_add_up_to_the_mean_squared_norm(seed, classes, dim):
    features, labels = sample(seed, classes, dim)
    moments = class_moments(features, labels, classes)
    size, counts = class_sizes(features, labels, classes)
    torch.testing.assert_close(moments.size_K, size)
    assert counts.tolist() == moments.counts_K.tolist() == np.bincount(labels, minlength=classes).tolist()


@pytest.mark.parametrize("norm", [1.0, 1.5, 2.0, 3.0, math.inf])
@pytest.mark.parametrize("with_bias", [False, True])
def test_class_sizes_equal_a_loop_with_numpy_norms(norm, with_bias):
    features, labels = sample(3, classes=4, dim=5)
    labels[:4] = -1
    size, _ = class_sizes(features, labels, 5, p=norm, with_bias=with_bias)
    points = np.concatenate([features.numpy(), np.ones((30, 1))], axis=1) if with_bias else features.numpy()
    for label in range(4):
        expected = np.mean([np.linalg.norm(p, norm) ** 2 for p in points[labels.numpy() == label]])
        assert size[label] == pytest.approx(expected)
    assert size[4] == 0


def test_a_small_deviation_of_large_features_survives_float32():
    features = torch.tensor([[1e4], [1e4 + 1], [1e4 - 1]])
    moments = class_moments(features, torch.zeros(3, dtype=torch.long), 1)
    assert moments.deviation_K.item() == pytest.approx(2 / 3)


def test_half_precision_is_promoted():
    size, _ = class_sizes(torch.full((2, 4), 300.0, dtype=torch.float16), torch.tensor([0, 0]), 1)
    assert size.dtype == torch.float32
    assert size.item() == pytest.approx(4 * 300**2)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (torch.tensor([0, 2]), "from 0 to 1, or -1 for no class; got 2"),
        (torch.tensor([0, -2]), "got -2"),
        (torch.tensor([0]), "2 integers"),
        (torch.tensor([0.0, 1.0]), "integers"),
        (torch.tensor([-1, -1]), "at least one sample with a class"),
    ],
)
def test_wrong_labels_are_rejected(labels, message):
    with pytest.raises(ValueError, match=message):
        class_moments(torch.zeros(2, 3), labels, 2)
