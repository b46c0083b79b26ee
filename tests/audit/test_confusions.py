"""Confusions against scikit-learn's matrix."""

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

from classgap.audit.metrics.confusions import confusion_pairs, top_confusions

NAMES = [f"c{k}" for k in range(6)]


@pytest.fixture
def case():
    rng = np.random.default_rng(0)
    targets = rng.integers(0, 5, 400)  # class 5 is only ever predicted
    predictions = np.where(rng.random(400) < 0.6, targets, rng.integers(0, 6, 400))
    return targets, predictions, confusion_matrix(targets, predictions, labels=range(6))


def test_top_confusions_are_the_largest_entries_of_a_row(case):
    targets, predictions, matrix = case
    support = np.bincount(targets, minlength=6)
    found = top_confusions(targets, predictions, NAMES, support, top=3)
    for k in range(6):
        others = sorted((j for j in range(6) if j != k and matrix[k, j]), key=lambda j: (-matrix[k, j], j))[:3]
        assert [entry.name for entry in found[k]] == [NAMES[j] for j in others]
        assert [entry.count for entry in found[k]] == [matrix[k, j] for j in others]
        assert [entry.rate for entry in found[k]] == [matrix[k, j] / support[k] for j in others]


def test_pairs_hold_both_ways_and_are_ranked(case):
    targets, predictions, matrix = case
    support = np.bincount(targets, minlength=6)
    found = confusion_pairs(targets, predictions, NAMES, support, top=100, confidence_level=0.95)
    assert len(found) == sum(matrix[i, j] + matrix[j, i] > 0 for i in range(6) for j in range(i))
    for entry in found:
        i, j = NAMES.index(entry.first), NAMES.index(entry.second)
        assert (entry.first_as_second, entry.second_as_first) == (matrix[i, j], matrix[j, i])
        assert entry.first_rate == (matrix[i, j] / support[i] if support[i] else None)
        assert entry.second_rate == (matrix[j, i] / support[j] if support[j] else None)
        assert entry.rate == pytest.approx((matrix[i, j] + matrix[j, i]) / (support[i] + support[j]))


def test_few_samples_do_not_lead_the_list():
    targets = np.array([0] * 100 + [1] * 100 + [2, 3])
    predictions = np.array([1] * 100 + [1] * 100 + [3, 2])
    first, second = confusion_pairs(targets, predictions, NAMES, np.bincount(targets, minlength=6), 5, 0.95)
    assert (second.first, second.second, second.rate) == ("c2", "c3", 1.0)
    assert (first.first, first.second, first.rate) == ("c0", "c1", 0.5)


def test_ten_thousand_classes_need_no_matrix():
    rng = np.random.default_rng(0)
    targets, predictions = rng.integers(0, 10_000, 20_000), rng.integers(0, 10_000, 20_000)
    names = [str(k) for k in range(10_000)]
    assert len(confusion_pairs(targets, predictions, names, np.bincount(targets, minlength=10_000), 50, 0.95)) == 50
