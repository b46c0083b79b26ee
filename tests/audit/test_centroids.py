"""Class means against scikit-learn's nearest centroids and scipy's distances."""

import numpy as np
import torch
from scipy.spatial.distance import cdist
from sklearn.neighbors import NearestCentroid

from classgap.audit.geometry import centroids as module
from classgap.audit.geometry.centroids import centroid_agreement, nearest_centroids, pairwise_distances


def test_nearest_against_all_distances():
    rng = np.random.default_rng(0)
    means = rng.normal(size=(9, 4))
    seen = np.array([0, 1, 3, 4, 5, 7, 8])
    classes, distances = nearest_centroids(torch.from_numpy(means), seen, neighbors=3)
    between = cdist(means, means)
    for k in range(9):
        if k not in seen:
            assert (classes[k] == -1).all()
            continue
        others = sorted((j for j in seen if j != k), key=lambda j: between[k, j])[:3]
        assert classes[k].tolist() == others
        np.testing.assert_allclose(distances[k], between[k, others])


def test_fewer_classes_than_neighbors():
    classes, distances = nearest_centroids(torch.tensor([[0.0], [2.0]]), np.array([0, 1]))
    assert classes.tolist() == [[1, -1, -1], [0, -1, -1]]
    assert distances[0, 0] == 2
    assert (nearest_centroids(torch.zeros(1, 2), np.array([0]))[0] == -1).all()


def test_agreement_with_scikit_learn(monkeypatch):
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 4, 500)
    features = rng.normal(size=(500, 3)) + rng.normal(size=(4, 3))[labels] + 7
    model = NearestCentroid().fit(features, labels)
    predictions = np.where(rng.random(500) < 0.5, labels, 0)
    expected = (model.predict(features) == predictions).mean()
    means = torch.from_numpy(model.centroids_)
    arguments = (torch.from_numpy(features), means, np.arange(4), predictions, np.random.default_rng(0))
    assert centroid_agreement(*arguments) == expected
    monkeypatch.setattr(module, "AGREEMENT_BUDGET", 200 * means.numel())
    assert abs(centroid_agreement(*arguments) - expected) < 0.15  # from 200 of the 500 samples


def test_distances_keep_nearly_equal_rows_apart():
    rng = np.random.default_rng(2)
    a = rng.normal(size=(5, 300)) * 100
    b = np.concatenate([a[:2] + 1e-3 * rng.normal(size=(2, 300)), a[:1], rng.normal(size=(4, 300))]).astype(np.float32)
    a = a.astype(np.float32)
    got = pairwise_distances(torch.from_numpy(a), torch.from_numpy(b)).numpy()
    np.testing.assert_allclose(got, cdist(a.astype(float), b.astype(float)), rtol=2e-3)
    assert got[0, 2] == 0
