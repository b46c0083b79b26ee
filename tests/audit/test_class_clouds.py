"""Feature statistics against loops over classes and pairs."""

import numpy as np
import pytest
import torch

from classgap.audit.geometry.class_clouds import class_clouds, farthest_distances
from classgap.audit.metrics.class_order import ClassOrder


@pytest.fixture
def case():
    rng = np.random.default_rng(0)
    labels = np.concatenate([rng.integers(0, 4, 60), [4]])  # class 4 has one sample, class 5 none
    features = rng.normal(size=(61, 8)) * (1 + labels[:, None]) + 5 * rng.normal(size=(6, 8))[labels]
    return labels, features


def test_clouds_against_loops(case):
    labels, features = case
    clouds = class_clouds(torch.from_numpy(features), ClassOrder.from_labels(labels, 6))
    longest = np.linalg.norm(features, axis=1).max()
    for k in range(4):
        own = features[labels == k]
        mean = own.mean(axis=0)
        spread = np.sqrt(((own - mean) ** 2).sum() / (len(own) - 1))
        between = np.array([[np.linalg.norm(a - b) for b in own] for a in own])
        assert clouds.mean_norm_K[k] == pytest.approx(np.linalg.norm(mean))
        assert clouds.spread_K[k] == pytest.approx(spread)
        assert clouds.spread_to_norm_K[k] == pytest.approx(spread / np.linalg.norm(mean))
        assert clouds.dispersion_K[k] == pytest.approx(between.max())
        assert clouds.max_intra_distance_K[k] == pytest.approx(between.max(axis=1).mean() / longest)


def test_gamma_is_equation_one(case):
    labels, features = case
    gamma = class_clouds(torch.from_numpy(features), ClassOrder.from_labels(labels, 6)).gamma_K
    squares = []
    for k in range(5):
        own = features[labels == k]
        squares.append((own.mean(axis=0) ** 2).sum() + own.var(axis=0).sum())  # ‖μ̂‖² + ‖ŝ‖², spread by n
    roots = np.cbrt(squares)
    np.testing.assert_allclose(gamma[:5], 5 * roots / roots.sum())
    assert np.isnan(gamma[5])


def test_one_sample_has_no_spread(case):
    labels, features = case
    clouds = class_clouds(torch.from_numpy(features), ClassOrder.from_labels(labels, 6))
    assert np.isfinite(clouds.mean_norm_K[4])
    assert np.isnan([clouds.spread_K[4], clouds.dispersion_K[4], clouds.mean_norm_K[5]]).all()


def test_distances_in_half_precision_far_from_the_origin():
    rng = np.random.default_rng(1)
    near = torch.from_numpy(rng.normal(size=(40, 4))).float()
    moved = class_clouds(near + 1e4, ClassOrder.from_labels(np.zeros(40, dtype=int), 1))
    still = class_clouds(near, ClassOrder.from_labels(np.zeros(40, dtype=int), 1))
    assert moved.spread_K[0] == pytest.approx(still.spread_K[0], rel=1e-3)
    assert moved.dispersion_K[0] == pytest.approx(still.dispersion_K[0], rel=1e-3)
    half = class_clouds(near.half(), ClassOrder.from_labels(np.zeros(40, dtype=int), 1))
    assert half.spread_K[0] == pytest.approx(still.spread_K[0], rel=1e-3)


def test_outermost_samples_are_enough_for_the_longest_pair():
    points = torch.from_numpy(np.random.default_rng(2).normal(size=(3000, 3)))
    points = points - points.mean(dim=0)
    expected = torch.cdist(points, points).amax(dim=1)
    squares = points.square().sum(dim=1)
    assert farthest_distances(points, squares, limit=500).max() == pytest.approx(float(expected.max()))
    torch.testing.assert_close(farthest_distances(points, squares, limit=3000), expected)


def test_distances_in_a_large_set_are_close_to_all_distances(monkeypatch):
    rng = np.random.default_rng(4)
    features = torch.from_numpy(rng.normal(size=(4000, 16))).float()
    order = ClassOrder.from_labels(np.arange(4000) % 3, 3)
    every = class_clouds(features, order)
    monkeypatch.setattr("classgap.audit.geometry.class_clouds.LARGE", 0)
    some = class_clouds(features, order)
    assert (some.dispersion_K <= every.dispersion_K * (1 + 1e-6)).all()
    np.testing.assert_allclose(some.dispersion_K, every.dispersion_K, rtol=0.02)
    np.testing.assert_allclose(some.max_intra_distance_K, every.max_intra_distance_K, rtol=0.03)
    np.testing.assert_array_equal(some.spread_K, every.spread_K)
