"""Records survive JSON; damaged, edited and truncated files are rejected with the path of the error."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from classgap.audit import Audit, AuditSettings
from classgap.audit.results import STRICT
from classgap.audit.serialization import from_plain, read_json, to_plain, write_json


@dataclass(frozen=True)
class Leaf:
    __pydantic_config__ = STRICT

    name: str
    value: float | None


@dataclass(frozen=True)
class Tree:
    __pydantic_config__ = STRICT

    leaves: tuple[Leaf, ...]
    pair: tuple[float, float]
    named: dict[str, int]


TREE = Tree((Leaf("a", 1.5), Leaf("ß", None)), (0.0, 2.0), {"x": 3})


def test_a_record_survives_a_file(tmp_path: Path) -> None:
    write_json(tmp_path / "tree.json", to_plain(TREE))
    assert from_plain(Tree, read_json(tmp_path / "tree.json")) == TREE
    assert json.loads((tmp_path / "tree.json").read_text())["leaves"][1] == {"name": "ß", "value": None}


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("leaves",), "a", r"^leaves must be .* got 'a'\.$"),
        (("leaves", 1, "value"), "high", r"^leaves\[1\]\.value must be .* got 'high'\.$"),
        (("leaves", 0, "value"), True, r"^leaves\[0\]\.value must be .* got True\.$"),
        (("leaves", 0), {"value": 1.0}, r"^leaves\[0\]\.name is missing\.$"),
        (("leaves", 0, "size"), 1.0, r"^leaves\[0\]\.size is not a known key\.$"),
        (("pair",), [1.0], r"^pair\[1\] is missing\.$"),
        (("named", "x"), 0.5, r"^named\.x must be .* got 0\.5\.$"),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(path: tuple, value: object, message: str) -> None:
    data = to_plain(TREE)
    place = data
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(ValueError, match=message):
        from_plain(Tree, data)


def test_numbers_that_json_lacks_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "tree.json", {"value": float("nan")})
    assert not list(tmp_path.iterdir())


def test_files_that_are_no_json_are_rejected(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text('{"a": ')
    with pytest.raises(ValueError, match=r"broken\.json is not a valid JSON file"):
        read_json(broken)
    with pytest.raises(ValueError, match=r"nowhere\.json cannot be read"):
        read_json(tmp_path / "nowhere.json")


def test_a_repeated_key_is_rejected(tmp_path: Path) -> None:
    groups = tmp_path / "groups.json"
    groups.write_text('{"all": {"pets": ["cat"], "cars": [], "pets": ["dog"]}}')
    with pytest.raises(ValueError, match=r"groups\.json .* 'pets' more than once"):
        read_json(groups)


def test_files_that_are_nested_too_deeply_are_rejected(tmp_path: Path) -> None:
    deep = tmp_path / "deep.json"
    deep.write_text("[" * 200_000 + "]" * 200_000)
    with pytest.raises(ValueError, match=r"deep\.json .* nested too deeply\.$"):
        read_json(deep)


def test_a_deep_value_is_rejected() -> None:
    deep: object = 0
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValueError, match="nested too deeply"):
        from_plain(Leaf, {"name": deep, "value": None})


def saved() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    targets = np.arange(60) % 6
    features = rng.normal(size=(60, 4)) + targets[:, None]
    logits = rng.normal(size=(60, 6)) + np.eye(6)[targets]
    settings = AuditSettings(n_resamples=20, map_points=30)
    return Audit.from_predictions(logits, targets, features=features, index=np.arange(60), settings=settings).to_dict()


def cut(data: dict[str, Any]) -> None:
    del data["classes"][4:]


def cut_and_counted(data: dict[str, Any]) -> None:
    cut(data)
    data["overall"]["num_classes"] = 4


def no_class(data: dict[str, Any]) -> None:
    data["classes"], data["overall"]["num_classes"] = [], 0


def set_to(value: Any, *steps: Any) -> Callable[[dict[str, Any]], None]:
    def change(data: dict[str, Any]) -> None:
        place: Any = data
        for step in steps[:-1]:
            place = place[step]
        place[steps[-1]] = value

    return change


def fewer_predictions(data: dict[str, Any]) -> None:
    other = Audit.from_predictions(predictions=[0] * 59, targets=[0] * 59).to_dict()
    data["samples"]["predictions"] = other["samples"]["predictions"]


def labels_of_more_classes(data: dict[str, Any]) -> None:
    other = Audit.from_predictions(predictions=np.arange(60) % 9, targets=np.arange(60) % 9).to_dict()
    data["samples"]["targets"] = other["samples"]["targets"]


CHANGES = {
    "cut": (cut, "classes must have 6 entries .* got 4"),
    "cut, and counted anew": (cut_and_counted, "not one of the 4 classes"),
    "no class": (no_class, "classes must have 0 entries .* got 0"),
    "order": (lambda data: data["classes"].reverse(), r"classes\[0\]\.index must be 0, got 5"),
    "quantiles": (
        set_to([0.0], "classes", 1, "logit_margin", "quantiles"),
        r"classes\[1\]\.logit_margin must have 9 quantiles, got 1",
    ),
    "equal names": (set_to("1", "classes", 0, "name"), "unique names"),
    "group": (set_to(["x"], "groups", "hard", "members"), r"groups\.hard names the class 'x'"),
    "pair": (set_to("x", "pairs", 0, "second"), r"pairs\[0\] names the class 'x'"),
    "gap": (set_to("x", "gap", "worst_name"), "gap names the class 'x'"),
    "map": (set_to(["x"], "map", "classes"), "map names the class 'x'"),
    "map's points": (set_to([0.5], "map", "x"), "map must have x, y, target and prediction"),
    "confusion": (
        set_to([{"name": "x", "count": 1, "rate": 0.1}], "classes", 2, "confusions"),
        r"classes\[2\]\.confusions names the class 'x'",
    ),
    "map's labels": (lambda data: data["map"]["target"].__setitem__(0, -1), r"map\.target must be in \[0, 5\], got -1"),
    "labels": (labels_of_more_classes, r"samples\.targets must be in \[0, 5\], got 8"),
    "lengths": (fewer_predictions, "samples must hold 60 .* got 59 and 60"),
    "no interval": (
        lambda data: data["gap"]["intervals"].pop("worst_class"),
        r"gap\.intervals\.worst_class is missing",
    ),
    "accuracy": (set_to(1.5, "overall", "accuracy"), r"overall\.accuracy must be in \[0, 1\], got 1\.5"),
    "class accuracy": (set_to(-0.5, "classes", 1, "accuracy"), r"classes\[1\]\.accuracy must be in .* got -0\.5"),
    "interval": (set_to([0.1, 1e308], "groups", "hard", "interval"), r"groups\.hard\.accuracy must be in .* 1e\+308"),
    "interval of the gap": (set_to([-3, 1], "gap", "intervals", "easy_hard"), r"gap\.easy_hard must be in \[-1, 1\]"),
}


@pytest.mark.parametrize(("change", "message"), CHANGES.values(), ids=CHANGES)
def test_parts_that_do_not_belong_together_are_rejected(change: Callable[[Any], None], message: str):
    data = saved()
    Audit.from_dict(data)
    change(data)
    with pytest.raises(ValueError, match=message) as caught:
        Audit.from_dict(data)
    assert "\n" not in str(caught.value)


def test_an_audit_with_unseen_classes_is_read(tmp_path: Path):
    audit = Audit.from_predictions(predictions=[0, 2], targets=[0, 0], class_names=["a", "b", "c"])
    audit.save(tmp_path / "audit.json")
    assert Audit.load(tmp_path / "audit.json").to_dict() == audit.to_dict()
