"""Each cause at its thresholds, from evidence written by hand."""

import dataclasses

import numpy as np
import pytest

from classgap.audit.diagnosis import causes
from classgap.audit.diagnosis.causes import Evidence
from classgap.audit.diagnosis.diagnose import diagnose
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


@pytest.mark.parametrize("correct", [0, 5, 50])
def test_test_samples_that_would_show_a_gain_of_three_points(evidence, correct):
    given = changed(evidence, train_counts_K=first(9, 100.0), correct_K=first(correct, 95))
    cause = causes.few_training_samples(0, given)
    samples, accuracy = cause.details["test_samples_for_3_points"], correct / 100
    simulated = np.random.default_rng(0).binomial(samples, [[accuracy], [accuracy + 0.03]], size=(2, 20_000)) / samples
    # A gain of 1.96 standard deviations.
    assert 0.03 / (simulated[1] - simulated[0]).std() == pytest.approx(1.96, rel=0.03)


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
    assert names[:2] == ["under-trained", "overlap"]


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
