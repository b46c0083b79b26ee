"""Single causes on evidence made by hand: where each of their conditions decides."""

import dataclasses

import numpy as np
import pytest

from classgap.audit.causes import Evidence, few_training_samples, large_spread, over_fitted, overlap
from classgap.audit.records import Confusion

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
        level=0.95,
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
        ((Confusion("b", 29, 0.29),), False),  # of 60 mistakes half are asked for, twice the even share of four
        ((Confusion("b", 30, 0.30),), True),
        ((), False),
    ],
)
def test_overlap_needs_a_share_of_the_mistakes(evidence, confusions, found):
    changed = dataclasses.replace(evidence, confusions=[confusions, (), (), (), ()])
    assert (overlap(0, changed) is not None) == found


def test_over_fitting_must_be_beyond_doubt_and_beyond_the_usual(evidence):
    assert over_fitted(0, evidence).figure == pytest.approx(0.6)
    few = dataclasses.replace(evidence, train_support_K=np.array([3, 300, 300, 300, 300]))
    assert over_fitted(0, few) is None  # 3 of 3 in training could be 44 %, 40 of 100 in the test 50 %
    usual = dataclasses.replace(evidence, correct_K=np.array([40, 38, 38, 38, 38]))
    assert over_fitted(0, usual) is None  # every class loses as much


def test_counts_and_spread_at_their_limits(evidence):
    def counted(count):
        return few_training_samples(
            0, dataclasses.replace(evidence, train_counts_K=np.array([count, 500.0, 500, 500, 500]))
        )

    assert counted(249) is not None
    assert counted(250) is None
    everyone_few = dataclasses.replace(evidence, train_counts_K=np.full(5, 19.0))
    assert few_training_samples(0, everyone_few).strength == 0.5

    def spread(value, support=100):
        changed = dataclasses.replace(
            evidence, spread_K=np.array([value, 1, 1, 1, 1]), support_K=np.array([support, 100, 100, 100, 100])
        )
        return large_spread(0, changed)

    assert spread(1.25) is not None
    assert spread(1.24) is None
    assert spread(9.0, support=4) is None  # too few samples to know their spread
