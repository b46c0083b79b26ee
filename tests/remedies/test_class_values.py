"""Costs and priors from mappings and files."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from classgap.remedies.class_values import check_costs, check_priors, read_class_values

NAMES = ("cat", "dog", "fox")
COSTS = [[0, 5, 1], [1, 0, 1], [1, 2.5, 0]]


def write(path: Path, content: object) -> Path:
    if path.suffix == ".npy":
        np.save(path, np.array(content))
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("costs.npy", COSTS),
        ("costs.json", COSTS),
        ("costs.json", {"cat": {"dog": 5}, "fox": {"dog": 2.5}}),
        ("costs.csv", "0,5,1\n1,0,1\n1,2.5,0\n"),
        ("costs.csv", ",dog,cat,fox\ncat,5,0,\nfox,2.5,,0\n"),
        ("costs.csv", "\ufefftrue,dog\r\nfox,2.5\r\n\r\ncat,5\r\n"),
    ],
)
def test_costs_of_every_format(name: str, content: object, tmp_path: Path):
    costs = check_costs(read_class_values(write(tmp_path / name, content), "costs"), NAMES)
    assert costs is not None
    np.testing.assert_array_equal(costs, COSTS)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("priors.npy", [2, 1, 1]),
        ("priors.json", [0.5, 0.25, 0.25]),
        ("priors.json", {"dog": 1, "fox": 1, "cat": 2}),
        ("priors.csv", "2\n1\n1\n"),
        ("priors.csv", "2,1,1\n"),
        ("priors.csv", "class,prior\nfox,1\ncat,2\ndog,1\n"),
        ("priors.csv", "fox,1\ncat,2\ndog,1\n"),
    ],
)
def test_priors_of_every_format(name: str, content: object, tmp_path: Path):
    priors = check_priors(read_class_values(write(tmp_path / name, content), "priors"), NAMES)
    assert priors is not None
    np.testing.assert_allclose(priors, [0.5, 0.25, 0.25])


def test_class_names_may_be_digits(tmp_path: Path):
    costs = read_class_values(write(tmp_path / "costs.csv", ",0,1\n0,0,3\n1,1,0\n"), "costs")
    np.testing.assert_array_equal(check_costs(costs, ("0", "1")), [[0, 3], [1, 0]])
    priors = read_class_values(write(tmp_path / "priors.csv", "1,3\n0,1\n"), "priors")
    np.testing.assert_array_equal(check_priors(priors, ("0", "1")), [0.25, 0.75])


@pytest.mark.parametrize(
    ("kind", "name", "content", "fact"),
    [
        ("costs", "costs.txt", "1", ".csv, .json or .npy"),
        ("costs", "costs.json", "{", "costs.json"),
        ("costs", "costs.json", {"cat": {"dgo": 5}}, "'dog'"),
        ("costs", "costs.json", {"cat": 5}, "'cat'"),
        ("costs", "costs.json", {"cat": {"dog": True}}, "True"),
        ("costs", "costs.json", {"cat": {"dog": -1}}, "-1"),
        ("costs", "costs.csv", "0,1\n1\n", "same number of cells"),
        ("costs", "costs.csv", ",dog,dog\ncat,1,2\n", "'dog' occurs twice"),
        ("costs", "costs.csv", ",dog\ncat,much\n", "'much'"),
        ("costs", "costs.csv", "", "empty"),
        ("costs", "costs.npy", [[0, 1], [1, 0]], "(3, 3)"),
        ("costs", "costs.npy", ["a", "b"], "numbers"),
        ("costs", "costs.npy", [[0, np.nan, 1], [1, 0, 1], [1, 1, 0]], "nan"),
        ("priors", "priors.json", {"cat": 1, "dog": 1}, "'fox'"),
        ("priors", "priors.json", {"cat": 1, "dog": 1, "fox": 1, "cow": 1}, "'cow'"),
        ("priors", "priors.json", {"cat": "1/2", "dog": 1, "fox": 1}, "'1/2'"),
        ("priors", "priors.csv", "cat,1\ncat,2\n", "'cat' occurs twice"),
        ("priors", "priors.csv", "cat,1,2\ndog,1,2\n", "3 columns"),
        ("priors", "priors.csv", "0,1,1\n", "'cat'"),
    ],
)
def test_bad_files_are_named(kind: str, name: str, content: object, fact: str, tmp_path: Path):
    check = check_costs if kind == "costs" else check_priors
    path = write(tmp_path / name, content) if name != "costs.txt" else tmp_path / name
    with pytest.raises(ValueError, match=re.escape(fact)):
        check(read_class_values(path, kind), NAMES)  # type: ignore[arg-type]


def test_pickles_are_not_loaded(tmp_path: Path):
    np.save(tmp_path / "costs.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="not an array of numbers"):
        read_class_values(tmp_path / "costs.npy", "costs")


def test_missing_file_is_named(tmp_path: Path):
    with pytest.raises(ValueError, match="does not exist"):
        read_class_values(tmp_path / "costs.csv", "costs")
