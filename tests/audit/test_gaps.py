"""Gap measures against loops, and their expectation for equal classes."""

import numpy as np
import pytest
from scipy import stats

from classgap.audit.metrics import gaps
from classgap.audit.metrics.accuracy import ClassCounts
from classgap.audit.stats.intervals import resample_accuracies

NAMES = tuple(f"c{k}" for k in range(12))


def audit_gap(correct, support, rank_by=None, seed=0, shared=None):
    counts = ClassCounts(np.asarray(support), np.asarray(correct), np.asarray(support))
    seen = counts.seen_K
    rng = np.random.default_rng(seed)
    replicates = resample_accuracies(counts.correct_K[seen], counts.support_K[seen], 2000, rng)
    return gaps.compute_gap(
        counts, replicates, NAMES, ranking_K=rank_by, shared_KBA=shared, confidence_level=0.95, rng=rng
    )


def test_measures_against_loops():
    accuracy = np.random.default_rng(0).random(11)
    pairs = sum(abs(a - b) for a in accuracy for b in accuracy)
    assert gaps.gini(accuracy) == pytest.approx(pairs / (2 * 11 * accuracy.sum()))
    ordered = sorted(accuracy)
    assert gaps.worst_tenth(accuracy) == pytest.approx(np.mean(ordered[:2]))
    assert gaps.easy_hard(accuracy) == pytest.approx(np.mean(ordered[-4:]) - np.mean(ordered[:4]))
    assert gaps.gini(np.zeros(3)) == 0


def test_unseen_classes_are_not_the_worst():
    result = audit_gap([9, 0, 4, 7], [10, 0, 10, 10])
    assert (result.worst_class, result.worst_name, result.best_name) == (0.4, "c2", "c0")
    assert result.easy_hard == pytest.approx(0.9 - 0.4)
    assert result.std == pytest.approx(np.std([0.9, 0.4, 0.7]))


def test_worst_class_has_its_wilson_interval():
    result = audit_gap([90, 0, 70], [100, 50, 100])
    expected = stats.binomtest(0, 50).proportion_ci(method="wilson")
    assert result.intervals["worst_class"] == pytest.approx(tuple(expected))


def test_intervals_hold_their_values():
    result = audit_gap(np.arange(12) * 4, [50] * 12)
    for name, interval in result.intervals.items():
        assert interval.low <= getattr(result, name) <= interval.high
        assert interval.low < interval.high
    assert set(result.intervals) == set(gaps.MEASURES)


def test_ranking_defines_the_thirds():
    accuracy = np.array([0.2, 0.5, 0.8])
    result = audit_gap((accuracy * 10).astype(int), [10] * 3, rank_by=-accuracy)
    assert result.easy_hard == pytest.approx(0.2 - 0.8)
    assert "easy_hard" not in result.expected_by_chance  # it depends on the origin of the ranking


def test_thirds_by_a_model_with_the_same_luck_differ_by_chance():
    rng = np.random.default_rng(5)
    support = 12 * [40]
    share = np.array([[0.25, 0.05], [0.05, 0.65]])  # both wrong, …, both right: they differ on a tenth
    expected = []
    for _ in range(2000):
        cells = rng.multinomial(40, share.ravel(), size=12).reshape(12, 2, 2)
        order = np.argsort(-cells[:, 1].sum(axis=1), kind="stable")
        right = cells[:, :, 1].sum(axis=1)[order] / 40
        expected.append(right[:4].mean() - right[-4:].mean())
    shared = np.tile((40 * share).astype(int), (12, 1, 1))
    result = audit_gap(shared[:, :, 1].sum(axis=1), support, np.zeros(12), shared=shared)
    assert result.expected_by_chance["easy_hard"] == pytest.approx(np.mean(expected), abs=0.008)
    assert np.mean(expected) > 0.1


def test_a_class_is_not_compared_with_itself():
    assert "best_worst" not in audit_gap([10, 10], [20, 20]).intervals
    assert "best_worst" in audit_gap([10, 11], [20, 20]).intervals


def test_by_chance_is_what_equal_classes_show():
    rng = np.random.default_rng(3)
    expected = float(np.mean([gaps.easy_hard(rng.binomial(50, 0.9, 12) / 50) for _ in range(400)]))
    assert audit_gap([45] * 12, [50] * 12).expected_by_chance["easy_hard"] == pytest.approx(expected, abs=0.008)
    assert expected > 0.07  # without any true gap


def test_one_class_has_no_easy_and_hard():
    result = audit_gap([3], [5])
    assert result.easy_hard is None
    assert result.expected_by_chance == {}


def test_no_mistake_at_all_still_leaves_doubt():
    result = audit_gap([20] * 6, [20] * 6)
    assert result.easy_hard == 0
    assert result.intervals["easy_hard"].low < 0 < result.intervals["easy_hard"].high
    assert result.intervals["worst_tenth"].low < 1
