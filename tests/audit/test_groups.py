"""Groups against loops, and thirds of numbers of classes that three does not divide."""

import numpy as np
import pytest

from classgap.audit.metrics.gaps import MEASURES
from classgap.audit.metrics.groups import build_groups, by_frequency, parse_groups, thirds


@pytest.mark.parametrize(
    ("classes", "sizes"),
    [(1, (0, 1, 0)), (2, (1, 0, 1)), (3, (1, 1, 1)), (4, (1, 2, 1)), (100, (33, 34, 33)), (101, (34, 33, 34))],
)
def test_sizes_of_thirds(classes, sizes):
    parts = thirds(np.linspace(0, 1, classes), np.ones(classes, bool))
    assert tuple(len(part) for part in parts.values()) == sizes
    assert sorted(np.concatenate(list(parts.values())).tolist()) == list(range(classes))


def test_thirds_against_a_loop_with_ties_and_unseen_classes():
    rng = np.random.default_rng(0)
    score = rng.integers(0, 5, 20) / 4
    seen = rng.random(20) > 0.2
    ranked = sorted((k for k in range(20) if seen[k]), key=lambda k: (-score[k], k))
    parts = thirds(np.where(seen, score, np.nan), seen)
    joined = [k for name in ("easy", "medium", "hard") for k in parts[name].tolist()]
    assert joined == ranked


def test_ranking_without_a_number_for_a_seen_class_is_rejected():
    with pytest.raises(ValueError, match="class 1 has none"):
        thirds(np.array([0.5, np.nan]), np.array([True, True]))


def test_frequency_cuts():
    parts = by_frequency(np.array([5.0, 50, 500, 20, 100, 19]))
    assert {name: part.tolist() for name, part in parts.items()} == {"head": [2, 4], "torso": [1, 3], "tail": [0, 5]}
    assert by_frequency(np.array([5.0, 50]), (50, 10))["head"].tolist() == [1]
    with pytest.raises(ValueError, match="frequency_cuts"):
        by_frequency(np.array([1.0]), (20, 100))


def test_unknown_and_missing_classes_are_rejected():
    names = ["cat", "dog"]
    with pytest.raises(ValueError, match="unknown class 'cow'"):
        parse_groups({"pets": ["cow"]}, names)
    with pytest.raises(ValueError, match="2 group names, one per class, got 1"):
        parse_groups(["a"], names)
    with pytest.raises(ValueError, match="at least one class"):
        parse_groups({"pets": []}, names)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"pets": [["cat"]]}, r"groups: 'pets' must .*got \['cat'\] of type list"),
        ({"pets": [0.0]}, r"got 0\.0 of type float"),
        ({"pets": [True]}, r"got True of type bool"),
        ({"pets": [None]}, r"got None of type NoneType"),
        ({"pets": 3}, r"groups: 'pets' must be a list .*got 3"),
        ({"pets": "cat"}, r"list of at least one class, got 'cat'"),
        ({"pets": {"cat": 1}}, r"at least one class, got \{'cat': 1\}"),
        (3, r"groups must be a list of group names.*got 3"),
    ],
)
def test_invalid_classes_are_rejected(groups, message):
    with pytest.raises(ValueError, match=message):
        parse_groups(groups, ["cat", "dog"])


def test_arrays_and_tuples_of_classes_are_lists_too():
    parts = parse_groups({"a": np.array([1, 0]), "b": ("dog",), "c": np.array(["cat"])}, ["cat", "dog"])
    assert {name: part.tolist() for name, part in parts.items()} == {"a": [1, 0], "b": [1], "c": [0]}


@pytest.mark.parametrize("name", ["hard", "tail", "accuracy", "balanced_accuracy", *MEASURES])
def test_reserved_names_are_rejected(name):
    with pytest.raises(ValueError, match=f"'{name}'"):
        build_groups(
            np.array([0.5, 0.6]),
            ranking_K=None,
            train_counts_K=None,
            cuts=(100, 20),
            groups={name: [0]},
            names=["a", "b"],
        )
