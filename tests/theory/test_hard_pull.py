import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from classgap.functional import group_by_class, pull
from classgap.theory.elm import farthest_distances, hard_pull
from classgap.theory.mr2 import hard_representation_loss

few = settings(max_examples=25, deadline=None, derandomize=True, database=None)


def sample(seed: int, classes: int, dim: int, rows: int = 24):
    rng = np.random.default_rng(seed)
    slack = torch.from_numpy(rng.uniform(-1, 4, classes))
    return rng.normal(size=(rows, dim)), rng.integers(-1, classes, rows), slack


@few
@given(seed=st.integers(0, 10_000), classes=st.integers(1, 6), dim=st.integers(1, 4))
def test_hard_pull_is_the_largest_excess_and_bounds_the_pull_from_both_sides(seed, classes, dim):
    features, labels, slack = sample(seed, classes, dim)
    labels[0] = 0
    given_ = torch.from_numpy(features), torch.from_numpy(labels)
    far, hard = farthest_distances(*given_, classes), hard_pull(*given_, slack)
    soft = pull(given_[0], group_by_class(given_[1], classes), slack[given_[1].clamp(min=0)])
    distance = cdist(features, features)
    for i, y in enumerate(labels):
        if y < 0:
            assert math.isnan(far[i])
            assert math.isnan(hard[i])
            continue
        others = [distance[i, j] for j in range(len(labels)) if j != i and labels[j] == y]
        assert far[i].item() == pytest.approx(max(others, default=0))
        expected = max([0, *(d**2 - slack[y].item() for d in others)])
        assert hard[i].item() == pytest.approx(expected)
        assert expected - 1e-9 <= soft[i].item() <= expected + math.log(len(others) + 1) + 1e-9


def test_eq_3_uses_twice_the_mean_spread_of_the_classes_seen():
    rng = np.random.default_rng(1)
    features, labels = rng.normal(size=(12, 2)), np.array([0] * 5 + [2] * 7)
    got = hard_representation_loss(torch.from_numpy(features), torch.from_numpy(labels), 3)
    spread = np.mean([features[labels == k].var(axis=0).sum() for k in (0, 2)])
    for i in range(12):
        squares = ((features[i] - features[labels == labels[i]]) ** 2).sum(axis=1)
        assert got[i].item() == pytest.approx(max(0, squares.max() - 2 * spread))


def test_close_points_far_from_the_origin():
    features = torch.tensor([[1e4, 0.0], [1e4, 0.25], [1e4, 1.0]])
    assert farthest_distances(features, torch.zeros(3, dtype=torch.long), 1).tolist() == [1, 0.75, 1]
