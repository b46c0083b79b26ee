import csv
import json
from pathlib import Path

import pytest

from classgap.reproduce.cells import Cell
from classgap.reproduce.store import ResultStore

RESULTS = Path(__file__).parents[2] / "results"
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


def test_the_index_shows_the_number_of_epochs(tmp_path: Path) -> None:
    store, cell = ResultStore(tmp_path), Cell.from_settings({"data": "digits", "epochs": 20})
    record = {"metrics": {}, "epochs": {"loss": [0.5, 0.25]}}
    store.add({"key": cell.key(0), "seed": 0, "settings": cell.training_settings(), **record})
    store.rebuild_index()
    (row,) = csv.DictReader(store.index.read_text().splitlines())
    assert row["epochs"] == "20"


@pytest.mark.skipif(not RESULTS.exists(), reason="the source distribution has no results/")
def test_the_committed_store_has_one_entry_per_run() -> None:
    store = ResultStore(RESULTS)
    with store.index.open(newline="", encoding="utf-8") as file:
        indexed = [row["key"] for row in csv.DictReader(file)]
    assert indexed == store.keys()
    for key in store.keys():  # noqa: SIM118  # a method of the store
        entry = store.get(key)
        assert entry is not None
        cell = Cell.from_settings(entry["settings"])
        assert cell.key(entry["seed"]) == key
        assert cell.training_settings() == entry["settings"]


def test_what_a_run_stores_in_addition_is_not_part_of_its_key(tmp_path: Path) -> None:
    mapped = Cell.from_settings({"data": "digits", "method": "mr2", "map": "test", "class_stats": True})
    assert mapped.key(0) == CELL.key(0)
    assert mapped.training_settings() == CELL.to_dict()
    plain = {"metrics": {}, "class_stats": {}}
    assert CELL.is_stored(0, plain)
    assert not mapped.is_stored(0, plain)  # the map is missing
    assert mapped.is_stored(1, plain)  # maps are drawn for the first seed
    assert mapped.is_stored(0, plain | {"maps": {"test": {}}})
    assert not Cell.from_settings({**mapped.to_dict(), "map": "layer2"}).is_stored(1, plain)  # its numbers are compared


def test_maps_of_one_run_add_up(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    for name in ("test", "layer2"):
        store.add({"key": "0a", "seed": 0, "settings": {}, "metrics": {}, "maps": {name: {"points": {}}}})
    assert set(ResultStore(tmp_path).get("0a")["maps"]) == {"test", "layer2"}


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
        {"maps": {"test": {"points": {"a": [[1, 2, 3]]}}}},
        {"maps": {"test": {"points": {}, "boundary": [1.0, 2.0]}}},
        {"maps": {"layer2": {"points": {}, "within_between": "small"}}},
        {"corrupted": {"noise": ["low"]}},
    ],
)
def test_entries_with_other_types_are_damaged(tmp_path: Path, damage: dict) -> None:
    store = ResultStore(tmp_path)
    add(store, 0, 0.5)
    (path,) = store.entries.iterdir()
    path.write_text(json.dumps(json.loads(path.read_text()) | damage))
    with pytest.raises(ValueError, match=rf"{path.name} is damaged \(.*{next(iter(damage))}"):
        ResultStore(tmp_path).find(CELL, 1)
