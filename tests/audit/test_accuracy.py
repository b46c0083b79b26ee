"""Accuracies against scikit-learn."""

import numpy as np
import pytest
import torch
from sklearn import metrics

from classgap.audit.metrics.accuracy import ClassCounts, top_k_accuracy
from classgap.audit.metrics.scores import score_samples


@pytest.fixture
def case():
    rng = np.random.default_rng(0)
    targets = rng.integers(0, 7, 500)
    logits = rng.normal(size=(500, 7)) + 1.5 * np.eye(7)[targets]
    return targets, logits


def test_counts_agree_with_scikit_learn(case):
    targets, logits = case
    labels = logits.argmax(axis=1)
    counts = ClassCounts.from_labels(targets, labels, 7)
    assert counts.accuracy == pytest.approx(metrics.accuracy_score(targets, labels))
    assert counts.balanced_accuracy == pytest.approx(metrics.balanced_accuracy_score(targets, labels))
    precision, recall, _, support = metrics.precision_recall_fscore_support(targets, labels)
    np.testing.assert_allclose(counts.precision_K, precision)
    np.testing.assert_allclose(counts.accuracy_K, recall)
    np.testing.assert_array_equal(counts.support_K, support)


def test_top_k_agrees_with_scikit_learn(case):
    targets, logits = case
    rank = score_samples(torch.from_numpy(logits), targets).rank_N
    for k, share in top_k_accuracy(rank, [1, 2, 5], 7).items():
        assert share == pytest.approx(metrics.top_k_accuracy_score(targets, logits, k=k))


def test_unseen_class_is_unknown_and_in_no_average():
    counts = ClassCounts.from_labels(np.array([0, 0, 2]), np.array([0, 1, 2]), 4)
    assert np.isnan(counts.accuracy_K[[1, 3]]).all()
    assert counts.balanced_accuracy == 0.75
    assert counts.precision_K[1] == 0  # predicted once, never right


def test_equal_scores_rank_by_class_index_as_argmax_does():
    logits = torch.tensor([[1.0, 1.0, 1.0], [0.0, 2.0, 2.0]])
    assert score_samples(logits, np.array([1, 2])).rank_N.tolist() == [1, 1]
    assert logits.argmax(dim=1).tolist() == [0, 1]
