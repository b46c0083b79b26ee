import csv
import json
from pathlib import Path

import pytest

from classgap.reproduce.cells import Cell
from classgap.reproduce.store import ResultStore

CELL = Cell.from_settings({"data": "digits", "method": "mr2"})


def add(store: ResultStore, seed: int, accuracy: float) -> None:
    store.add({"key": CELL.key(seed), "seed": seed, "settings": CELL.to_dict(), "metrics": {"accuracy": accuracy}})


def test_the_same_run_twice_is_one_entry(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    add(store, 0, 0.5)
    add(store, 0, 0.6)
    add(store, 1, 0.7)
    assert len(ResultStore(tmp_path).keys()) == 2
    assert {seed: each["metrics"] for seed, each in ResultStore(tmp_path).find(CELL, 3).items()} == {
        0: {"accuracy": 0.6},
        1: {"accuracy": 0.7},
    }


def test_the_index_is_rebuilt_from_the_entries(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    add(store, 0, 0.5)
    store.rebuild_index()
    first = store.index.read_text()
    store.index.unlink()
    ResultStore(tmp_path).rebuild_index()
    assert store.index.read_text() == first
    (row,) = csv.DictReader(first.splitlines())
    assert (row["key"], row["method"], row["accuracy"]) == (CELL.key(0), "mr2", "0.5")


def test_keys_depend_on_settings_that_change_the_result_only() -> None:
    same = Cell.from_settings({"method": "mr2", "data": "digits", "lr": None, "momentum": 0.9, "device": "cpu"})
    assert same.key(0) == CELL.key(0)
    assert len({CELL.key(0), CELL.key(1), Cell.from_settings({"data": "digits"}).key(0)}) == 3


@pytest.mark.parametrize("content", ["{", "[]", '{"schema": 1}', '{"schema": 1, "key": "x", "metrics": {}}'])
def test_damaged_entries_are_named(tmp_path: Path, content: str) -> None:
    store = ResultStore(tmp_path)
    add(store, 0, 0.5)
    path = store.entries / f"{CELL.key(0)}.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=f"{path.name} is damaged"):
        ResultStore(tmp_path).get(CELL.key(0))


def test_entries_of_later_versions_are_rejected(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    add(store, 0, 0.5)
    path = store.entries / f"{CELL.key(0)}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema": 99}))
    with pytest.raises(ValueError, match="schema 99"):
        ResultStore(tmp_path).get(CELL.key(0))


@pytest.mark.parametrize(
    "damage",
    [
        {"metrics": {"accuracy": "high"}},
        {"metrics": {"accuracy": None}},
        {"settings": None},
        {"classes": {"name": ["a"]}},
        {"classes": {"name": ["a"], "groups": [["easy"]], "accuracy": [1, 2]}},
        {"epochs": {"loss": ["x"]}},
        {"map": {"a": [[1, 2, 3]]}},
    ],
)
def test_entries_with_other_types_are_damaged(tmp_path: Path, damage: dict) -> None:
    store = ResultStore(tmp_path)
    add(store, 0, 0.5)
    (path,) = store.entries.iterdir()
    path.write_text(json.dumps(json.loads(path.read_text()) | damage))
    with pytest.raises(ValueError, match=rf"{path.name} is damaged \(.*{next(iter(damage))}"):
        ResultStore(tmp_path).find(CELL, 1)
