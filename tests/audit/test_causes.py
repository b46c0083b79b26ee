"""Each cause at its thresholds, from evidence written by hand."""

import dataclasses

import numpy as np
import pytest

from classgap.audit.diagnosis import causes
from classgap.audit.diagnosis.diagnose import diagnose
from classgap.audit.diagnosis.evidence import Evidence
from classgap.audit.diagnosis.loss_trend import LossTrend
from classgap.audit.results import Confusion


@pytest.fixture
def evidence():
    """Ten classes of 100 samples: class 0 has 40 errors, the others 5."""
    errors = np.array([40, *[5] * 9])
    zeros = np.zeros(10, dtype=np.int64)
    return Evidence(
        names=[f"c{k}" for k in range(10)],
        support_K=np.full(10, 100),
        correct_K=100 - errors,
        confusions=[(Confusion("c1", 30, 0.3), Confusion("c2", 10, 0.1)), *[()] * 9],
        confused_back=[25, *[0] * 9],
        train_counts_K=np.full(10, 100.0),
        tail_below=20,
        spread_K=np.ones(10),
        nearest_Km=None,
        train_accuracy_K=np.full(10, 0.97),
        train_support_K=np.full(10, 100),
        loss_trend=None,
        doubted_K=zeros,
        fixed_K={"decision": zeros, "head": zeros},
        broken_K={"decision": zeros, "head": zeros},
        lost_K=zeros,
        confidence_level=0.95,
    )


def changed(evidence, **values):
    return dataclasses.replace(evidence, **values)


def first(value, rest=0):
    return np.array([value, *[rest] * 9])


@pytest.mark.parametrize(("count", "found"), [(49, True), (50, False)])
def test_few_training_samples_below_half_the_median(evidence, count, found):
    cause = causes.few_training_samples(0, changed(evidence, train_counts_K=first(count, 100.0)))
    assert (cause is not None) == found


@pytest.mark.parametrize("correct", [5, 50, 90])
def test_test_samples_that_would_show_a_gain_of_three_points(evidence, correct):
    given = changed(evidence, train_counts_K=first(9, 100.0), correct_K=first(correct, 95))
    cause = causes.few_training_samples(0, given)
    samples, accuracy = cause.details["test_samples_for_3_points"], correct / 100
    before, after = (
        np.random.default_rng(0).binomial(samples, [[accuracy], [accuracy + 0.03]], size=(2, 20_000)) / samples
    )
    deviation = np.sqrt((before * (1 - before) + after * (1 - after)) / samples)
    assert (after - before > 1.96 * deviation).mean() == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize(("doubted", "found"), [(15, False), (16, True), (40, True)])
def test_wrong_labels_explain_two_fifths_of_the_errors(evidence, doubted, found):
    assert (causes.wrong_labels(0, changed(evidence, doubted_K=first(doubted))) is not None) == found


def test_doubts_about_every_class_are_no_evidence(evidence):
    assert causes.wrong_labels(0, changed(evidence, doubted_K=first(18, 15))) is None


def test_more_than_half_of_a_class_is_not_mislabeled(evidence):
    worse = changed(evidence, correct_K=np.array([40, *[95] * 9]), doubted_K=first(60))
    assert causes.wrong_labels(0, worse) is None


@pytest.mark.parametrize(
    ("confused", "nearest", "found"),
    [
        (Confusion("c1", 30, 0.3), None, True),
        (Confusion("c1", 30, 0.3), [1, 2, 3], True),
        (Confusion("c1", 30, 0.3), [2, 3, 4], False),  # the features contradict
        (Confusion("c1", 13, 0.13), None, False),  # below a third of the 40 errors
        (Confusion("c1", 14, 0.14), None, True),
    ],
)
def test_overlap(evidence, confused, nearest, found):
    near = None if nearest is None else np.array([nearest] * 10)
    case = changed(evidence, confusions=[(confused,), *[()] * 9], nearest_Km=near)
    cause = causes.overlap(0, case)
    assert (cause is not None) == found
    if cause:
        assert (cause.other, cause.details["back_count"]) == ("c1", 25)


def test_a_change_must_remove_a_third_of_the_errors_net_and_significantly(evidence):
    def with_change(fixed, broken):
        return changed(evidence, fixed_K={"decision": first(fixed)}, broken_K={"decision": first(broken)})

    assert causes.decision_bias(0, with_change(14, 0)) is not None
    assert causes.decision_bias(0, with_change(13, 0)) is None
    assert causes.decision_bias(0, with_change(30, 17)) is None
    assert causes.close_boundary(0, with_change(14, 0)) is None  # no head was refitted


def test_under_trained_needs_low_training_accuracy_and_a_lift_of_all_classes(evidence):
    low = changed(evidence, train_accuracy_K=first(0.6, 0.9))
    better = {"decision": first(0), "head": first(30, 6)}
    none = {"decision": first(0), "head": first(0)}
    assert causes.under_trained(0, changed(low, fixed_K=better, broken_K=none)) is not None
    alone = {"decision": first(0), "head": first(30, 0)}
    assert causes.under_trained(0, changed(low, fixed_K=alone, broken_K=none)) is None  # a head, not the training
    assert causes.under_trained(0, changed(evidence, fixed_K=better, broken_K=none)) is None  # fits the training set


def test_a_falling_loss_shows_under_training_if_training_accuracy_is_low(evidence):
    falling = LossTrend(before=1.0, after=0.9, fall=0.1, noise=0.01, progress=2.0, epoch=10, epochs=12)
    low = changed(evidence, train_accuracy_K=first(0.6, 0.9), loss_trend=falling)
    cause = causes.under_trained(0, low)
    assert (cause.figure, cause.reference, cause.details["epochs"]) == (0.9, 1.0, 12)
    assert causes.under_trained(0, changed(low, fixed_K={}, broken_K={})) is not None  # no features
    for fall, noise in ((0.049, 0.01), (0.1, 0.051)):
        slow = dataclasses.replace(falling, fall=fall, noise=noise)
        assert causes.under_trained(0, changed(low, loss_trend=slow)) is None
    assert causes.under_trained(0, changed(evidence, loss_trend=falling)) is None  # fits the training set


def test_overlap_is_named_before_a_falling_loss_but_after_a_better_head(evidence):
    falling = LossTrend(before=1.0, after=0.9, fall=0.1, noise=0.01, progress=2.0, epoch=10, epochs=12)
    low = changed(evidence, train_accuracy_K=first(0.6, 0.9), loss_trend=falling)
    hard, balanced = np.array([0]), float(low.accuracy_K.mean())
    names = [cause.name for cause in diagnose(low, hard, balanced)[0]]
    assert names[:2] == ["overlap", "under-trained"]
    better = {"decision": first(0), "head": first(30, 6)}
    names = [cause.name for cause in diagnose(changed(low, fixed_K=better), hard, balanced)[0]]
    assert names[0] == "under-trained"
    assert "overlap" in names


@pytest.mark.parametrize(
    ("change", "cost", "first_named"),
    [
        ("decision", 0, "decision-bias"),
        ("decision", 10, "decision-bias"),  # 24 - 10 errors, net: a third of the 40
        ("decision", 11, "overlap"),  # the change moves errors to the other class
        ("head", 0, "close-boundary"),
        ("head", 20, "overlap"),
    ],
)
def test_a_change_comes_before_overlap_if_both_classes_gain(evidence, change, cost, first_named):
    zeros = first(0)
    costs = zeros.copy()
    costs[1] = cost  # of c1, with which class 0 is confused
    plain = {"decision": zeros, "head": zeros}
    case = changed(
        evidence, fixed_K=plain | {change: first(24)}, broken_K=plain | {change: costs}, train_accuracy_K=None
    )
    names = [cause.name for cause in diagnose(case, np.array([0]), float(case.accuracy_K.mean()))[0]]
    assert names[0] == first_named
    assert "overlap" in names


def test_models_without_a_head_are_not_called_under_trained(evidence):
    low = changed(evidence, train_accuracy_K=first(0.6, 0.9), fixed_K={"decision": first(0), "head": first(30, 6)})
    assert causes.under_trained(0, low) is not None
    headless = changed(low, has_head=False)
    assert causes.under_trained(0, headless) is None
    assert causes.close_boundary(0, headless).details["head"] == "none"
    assert "head" not in causes.close_boundary(0, low).details


@pytest.mark.parametrize(
    ("counts", "nearest", "others"),
    [
        ((12, 10, 2), None, ("c1", "c2")),
        ((9, 8, 10), None, ("c1", "c2", "c3")),
        ((12, 7, 2), None, None),  # fewer than half of the 40 errors, and the third has too few samples
        ((12, 10, 2), [1, 3, 4], None),  # the features contradict
        ((12, 10, 2), [2, 1, 4], ("c1", "c2")),
    ],
)
def test_overlap_with_several_classes(evidence, counts, nearest, others):
    confused = tuple(Confusion(f"c{k}", count, count / 100) for k, count in enumerate(counts, 1))
    near = None if nearest is None else np.array([nearest] * 10)
    case = changed(evidence, confusions=[confused, *[()] * 9], nearest_Km=near, train_accuracy_K=None)
    found = causes.overlap_with_several(0, case)
    (named,) = diagnose(case, np.array([0]), float(case.accuracy_K.mean()))[0]
    if others is None:
        assert found is None
        assert named.name == "not-enough-evidence"
    else:
        assert found == named
        assert named.details["others"] == others
        assert named.details["count"] == sum(counts[: len(others)])


def test_evenly_spread_errors_are_no_overlap(evidence):
    confused = tuple(Confusion(f"c{k}", 5, 0.05) for k in range(1, 9))
    assert causes.overlap_with_several(0, changed(evidence, confusions=[confused, *[()] * 9])) is None
    three = changed(
        evidence,
        support_K=np.array([100] * 4 + [0] * 6),
        confusions=[(Confusion("c1", 20, 0.2), Confusion("c2", 20, 0.2)), *[()] * 9],
    )
    assert causes.overlap_with_several(0, three) is None  # two of three classes say little


@pytest.mark.parametrize(("samples", "diagnosed"), [(200, True), (2_000, False)])
def test_class_that_is_surely_close_to_the_mean_does_not_fail(evidence, samples, diagnosed):
    support = np.full(10, samples)
    correct = np.array([0.89, *[0.9] * 9]) * samples
    case = changed(evidence, support_K=support, correct_K=np.round(correct).astype(np.int64))
    found = diagnose(case, np.array([0]), float(case.accuracy_K.mean()))
    assert (0 in found) == diagnosed
    if diagnosed:
        assert found[0][0].name == "too-few-test-samples"
        assert found[0][0].details["mean"] == pytest.approx(0.899)


def test_over_fitted_beyond_the_median_class(evidence):
    assert causes.over_fitted(0, evidence) is not None  # 0.97 - 0.6, others 0.97 - 0.95
    assert causes.over_fitted(0, changed(evidence, train_accuracy_K=first(0.7, 0.97))) is None
    assert causes.over_fitted(0, changed(evidence, train_accuracy_K=None)) is None


@pytest.mark.parametrize(("spread", "found"), [(1.24, False), (1.25, True)])
def test_large_spread(evidence, spread, found):
    assert (causes.large_spread(0, changed(evidence, spread_K=first(spread, 1.0))) is not None) == found


@pytest.mark.parametrize(("lost", "found"), [(15, False), (16, True)])
def test_representation(evidence, lost, found):
    assert (causes.representation(0, changed(evidence, lost_K=first(lost))) is not None) == found
