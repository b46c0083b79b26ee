import numpy as np
import pytest
import torch
from sklearn.neighbors import KNeighborsClassifier

from classgap.theory import neighbors
from classgap.theory.elm import knn_predict


def sample(seed: int = 0, rows: int = 80, classes: int = 4):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, rows)
    return rng.normal(size=(rows, 3)) + labels[:, None], labels, rng.normal(size=(50, 3)) + 1.5


@pytest.mark.parametrize("k", [1, 3, 7])
def test_predictions_are_those_of_scikit_learn_where_the_vote_is_clear(k, monkeypatch):
    monkeypatch.setattr(neighbors, "BLOCK_ROWS", 7)
    features, labels, queries = sample()
    found = knn_predict(*map(torch.from_numpy, (features, labels, queries)), num_classes=4, k=k).numpy()
    reference = KNeighborsClassifier(k, algorithm="brute").fit(features, labels)
    probability = np.sort(reference.predict_proba(queries), axis=1)
    clear = probability[:, -1] > probability[:, -2]
    assert clear.sum() > 20
    np.testing.assert_array_equal(found[clear], reference.predict(queries)[clear])


def test_ties_go_to_the_nearest_and_weights_balance_the_classes():
    features, labels = torch.tensor([[0.0], [1.0], [5.0]]), torch.tensor([1, 0, -1])
    assert knn_predict(features, labels, torch.tensor([[0.2], [0.9]]), num_classes=2, k=2).tolist() == [1, 0]
    features, labels, queries = sample(1)
    labels[labels == 3] = 0
    counts = np.bincount(labels, minlength=4)
    given = (torch.from_numpy(features), torch.from_numpy(labels), torch.from_numpy(queries))
    found = knn_predict(*given, num_classes=4, k=9, balanced=True)
    for query, got in zip(queries, found.tolist(), strict=True):
        near = labels[np.argsort(np.linalg.norm(features - query, axis=1))[:9]]
        votes = [(near == c).sum() / max(1, counts[c]) for c in range(4)]
        assert votes[got] == pytest.approx(max(votes))


@pytest.mark.parametrize("k", [0, 81])
def test_k_must_not_exceed_the_samples(k):
    features, labels, queries = sample()
    with pytest.raises(ValueError, match="k must be from 1 to"):
        knn_predict(*map(torch.from_numpy, (features, labels, queries)), num_classes=4, k=k)
