"""Each cause at its thresholds, on constructed evidence."""

import dataclasses

import numpy as np
import pytest

from classgap.audit.diagnosis.causes import (
    Evidence,
    close_boundary,
    few_training_samples,
    large_spread,
    over_fitted,
    overlap,
    wrong_labels,
)
from classgap.audit.results import Confusion

NAMES = ["a", "b", "c", "d", "e"]


@pytest.fixture
def evidence():
    """Class a: 40 of 100 right, 50 mistaken for b, whose mean is its nearest."""
    return Evidence(
        names=NAMES,
        support_K=np.full(5, 100),
        correct_K=np.array([40, 90, 90, 90, 90]),
        confusions=[(Confusion("b", 50, 0.5), Confusion("c", 10, 0.1)), (), (), (), ()],
        train_counts_K=np.full(5, 500.0),
        tail_below=20,
        spread_K=np.ones(5),
        nearest_Km=np.array([[1, 2, 3], [0, 2, 3], [3, 0, 1], [2, 4, 0], [3, 2, 1]]),
        nearest_distance_Km=np.array([[1.0, 5, 6], [1, 5, 6], [4, 5, 5], [4, 5, 6], [4, 6, 7]]),
        centroid_margin_K=None,
        facing_K=None,
        midpoint_K=None,
        train_accuracy_K=np.array([1.0, 0.95, 0.95, 0.95, 0.95]),
        train_support_K=np.full(5, 300),
        label_issues_K=None,
        confidence_level=0.95,
    )


def test_overlap_needs_nearness_both_in_rank_and_in_distance(evidence):
    assert overlap(0, evidence).other == "b"
    far = evidence.nearest_distance_Km.copy()
    far[:2, 0] = 4.5  # still the nearest, but farther than nearest means usually are (4)
    assert overlap(0, dataclasses.replace(evidence, nearest_distance_Km=far)) is None
    other = evidence.nearest_Km.copy()
    other[0] = [2, 3, 4]
    assert overlap(0, dataclasses.replace(evidence, nearest_Km=other)) is None


@pytest.mark.parametrize(
    ("confusions", "found"),
    [
        ((Confusion("b", 50, 0.5),), True),
        (
            (Confusion("b", 29, 0.29),),
            False,
        ),  # half of 60 mistakes are required, twice the even fraction of four classes
        ((Confusion("b", 30, 0.30),), True),
        ((), False),
    ],
)
def test_overlap_needs_a_fraction_of_the_mistakes(evidence, confusions, found):
    changed = dataclasses.replace(evidence, confusions=[confusions, (), (), (), ()])
    assert (overlap(0, changed) is not None) == found


def test_over_fitting_must_be_significant_and_unusual(evidence):
    assert over_fitted(0, evidence).figure == pytest.approx(0.6)
    few = dataclasses.replace(evidence, train_support_K=np.array([3, 300, 300, 300, 300]))
    assert over_fitted(0, few) is None  # 3 of 3 in training could be 44 %, 40 of 100 in the test 50 %
    usual = dataclasses.replace(evidence, correct_K=np.array([40, 38, 38, 38, 38]))
    assert over_fitted(0, usual) is None  # every class loses as much


def test_counts_and_spread_at_their_thresholds(evidence):
    def counted(count):
        return few_training_samples(
            0, dataclasses.replace(evidence, train_counts_K=np.array([count, 500.0, 500, 500, 500]))
        )

    assert counted(249) is not None
    assert counted(250) is None

    def spread(value, support=100):
        changed = dataclasses.replace(
            evidence, spread_K=np.array([value, 1, 1, 1, 1]), support_K=np.array([support, 100, 100, 100, 100])
        )
        return large_spread(0, changed)

    assert spread(1.25) is not None
    assert spread(1.24) is None
    assert spread(9.0, support=4) is None  # too few samples to estimate the spread


@pytest.mark.parametrize(
    ("counts", "usual"),
    [
        ([16.0, 16, 16, 16, 16], None),  # a number that all classes share explains no gap
        ([15.0, 16, 16, 16, 16], None),
        ([12.0, 16, 16, 16, 16], 16),  # in the tail, a smaller difference counts
        ([30.0, 40, 40, 40, 40], None),
        ([5.0, 5, 5, 500, 500], 252.5),  # the median class is in the tail; b to e are accurate
        ([5.0, 5, 5, 5, 500], None),  # b to d are accurate with as few
        ([0.0, 0, 0, 300, 500], 150),
        ([0.0, 0, 0, 0, 0], None),
        ([400.0, 16, 16, 16, 16], None),
    ],
)
def test_few_training_samples_are_fewer_than_others_have(evidence, counts, usual):
    found = few_training_samples(0, dataclasses.replace(evidence, train_counts_K=np.array(counts)))
    assert (found and found.reference) == usual
    if found:
        assert found.strength == pytest.approx(0.5 + max(0, 0.5 - counts[0] / usual))
        assert (found.figure, found.reference) == (counts[0], usual)


@pytest.mark.parametrize(
    ("counts", "advised"),
    [
        (None, False),
        ([16.0, 16, 16, 16, 16], False),
        ([500.0, 500, 500, 500, 500], False),
        ([100.0, 500, 500, 500, 500], True),
        ([500.0, 100, 500, 500, 500], False),  # more than the class across the boundary, which priors would move closer
        ([500.0, 500, 100, 500, 500], False),  # the close boundary is not the one to the rare class
    ],
)
def test_priors_are_advised_only_against_a_class_with_more_training_samples(evidence, counts, advised):
    midpoints = np.array([2.0, 3.0, 4.0, 5.0, 6.0])
    changed = dataclasses.replace(
        evidence,
        train_counts_K=None if counts is None else np.array(counts),
        centroid_margin_K=midpoints * [0.1, 0.4, 0.4, 0.4, 0.6],
        facing_K=np.array([1, 0, 0, 0, 0]),
        midpoint_K=midpoints,
    )
    assert close_boundary(0, changed).methods == (("lmdl", "logit-adjustment", "ldam") if advised else ("lmdl",))


def test_a_boundary_is_close_relative_to_accurate_classes(evidence):
    def boundary(shares, k=0):
        midpoints = np.array([2.0, 3.0, 4.0, 5.0, 6.0])
        changed = dataclasses.replace(
            evidence,
            centroid_margin_K=midpoints * shares,
            facing_K=np.array([1, 0, 0, 0, 0]),
            midpoint_K=midpoints,
        )
        return close_boundary(k, changed)

    found = boundary([0.1, 0.4, 0.4, 0.4, 0.6])  # the median of b to e is 0.4
    assert (found.figure, found.reference) == (pytest.approx(0.1), pytest.approx(0.4))
    assert found.other == "b"
    assert found.strength == pytest.approx(0.5 + 0.5 * (0.5 - 0.25) / 1.5 - 0.4)
    assert boundary([0.21, 0.4, 0.4, 0.4, 0.6]) is None  # far from the midpoint, but so are all others
    assert boundary([0.1, 0.0, 0.05, 0.4, 0.6]) is None  # accurate classes have boundaries as close
    assert boundary([-9.0, 0.4, 0.4, 0.4, 0.6]).strength == pytest.approx(0.6)
    assert boundary([np.nan, 0.4, 0.4, 0.4, 0.6]) is None
    assert boundary([-2.0, -0.1, -0.1, -0.1, -0.1]) is None  # no usual position to compare with


def test_a_symptom_ranks_below_every_cause_unless_much_stronger(evidence):
    few = dataclasses.replace(evidence, train_counts_K=np.array([100.0, 500, 500, 500, 500]))
    assert few_training_samples(0, few).strength == pytest.approx(0.8)
    # 100 % in training, 40 % in the test; the median class loses 5 %: 0.55 of at most 1, beyond 0.1.
    assert over_fitted(0, evidence).strength == pytest.approx(0.5 + 0.5 * (0.55 - 0.1) / 0.9 - 0.4)
    hopeless = dataclasses.replace(evidence, correct_K=np.array([0, 99, 99, 99, 99]))
    barely = dataclasses.replace(evidence, train_counts_K=np.array([249.0, 500, 500, 500, 500]))
    assert over_fitted(0, hopeless).strength > few_training_samples(0, barely).strength


def test_label_errors_must_be_more_than_usual(evidence):
    def doubted(counts):
        return wrong_labels(0, dataclasses.replace(evidence, label_issues_K=np.array(counts)))

    found = doubted([30, 2, 2, 2, 2])
    assert (found.figure, found.reference) == (0.3, 0.02)
    assert found.strength == pytest.approx(0.5 + 0.5 * 30 / 60 * 0.8)  # of 60 mistakes; mean accuracy 0.8
    assert doubted([30, 16, 16, 16, 16]) is None  # a model that contradicts labels of all classes
    assert doubted([9, 0, 0, 0, 0]) is None
    few = {"label_issues_K": np.array([30, 2, 2, 2, 2]), "train_counts_K": np.array([19.0, 500, 500, 500, 500])}
    assert wrong_labels(0, dataclasses.replace(evidence, **few)) is None  # tail classes are skipped
