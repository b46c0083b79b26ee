import json
from dataclasses import dataclass
from pathlib import Path

import pytest

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


def test_files_that_are_no_json_are_refused(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text('{"a": ')
    with pytest.raises(ValueError, match=r"broken\.json is not a valid JSON file"):
        read_json(broken)
    with pytest.raises(ValueError, match=r"nowhere\.json cannot be read"):
        read_json(tmp_path / "nowhere.json")


def test_files_that_are_nested_too_deeply_are_refused(tmp_path: Path) -> None:
    deep = tmp_path / "deep.json"
    deep.write_text("[" * 200_000 + "]" * 200_000)
    with pytest.raises(ValueError, match=r"deep\.json cannot be read: .* nested too deeply\.$"):
        read_json(deep)


def test_a_deep_value_is_rejected() -> None:
    deep: object = 0
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValueError, match="nested too deeply"):
        from_plain(Leaf, {"name": deep, "value": None})
