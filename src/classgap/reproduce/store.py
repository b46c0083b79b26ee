"""The result store: a directory of plain files, one per run, and an index that can be rebuilt from them."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from classgap._atomic_write import atomic_write_text
from classgap._csv_cells import escape_cell
from classgap.audit.serialization import read_json
from classgap.registry import short_repr
from classgap.reproduce.cells import Cell

SCHEMA = 1
INDEX_COLUMNS = ("key", "data", "model", "method", "epochs", "seed", "accuracy", "easy", "hard", "seconds", "version")


class ResultStore:
    """Results by key. Equal runs share one entry.

    Files: ``entries/KEY.json`` (settings, code version, environment, metrics), ``index.csv`` (one line per run, written
    for people and rebuilt from the entries) and ``.work/KEY/`` (run directories of runs that are not finished).

    Args:
        path: Directory; it need not exist.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     store = ResultStore(Path(folder))
    ...     store.add({"key": "0a", "seed": 0, "settings": {"data": "digits"}, "metrics": {"accuracy": 0.5}})
    ...     store.get("0a")["metrics"], store.get("0b"), store.keys()
    ({'accuracy': 0.5}, None, ['0a'])
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries = path / "entries"
        self.index = path / "index.csv"
        self._read: dict[str, dict[str, Any]] = {}

    def work(self, key: str) -> Path:
        """Return the run directory of a run that is not finished."""
        return self.path / ".work" / key

    def keys(self) -> list[str]:
        """Return the keys of all entries."""
        return sorted(path.stem for path in self.entries.glob("[!.]*.json"))

    def get(self, key: str) -> dict[str, Any] | None:
        """Return an entry; ``None`` if there is none.

        Raises:
            ValueError: If its file is damaged, or was written by a later version.
        """
        if key in self._read:
            return self._read[key]
        path = self.entries / f"{key}.json"
        if not path.exists():
            return None
        try:
            entry = read_json(path)
            check_entry(entry, key)
        except ValueError as error:
            reason = str(error).removeprefix(f"{path} ").rstrip(".")
            raise ValueError(f"{path} is damaged ({reason}); delete it to run it again.") from None
        if entry["schema"] != SCHEMA:
            schema = short_repr(entry["schema"])
            raise ValueError(f"{path} has schema {schema}, this version reads {SCHEMA}; update classgap.")
        self._read[key] = entry
        return entry

    def find(self, cell: Cell, seeds: int) -> dict[int, dict[str, Any]]:
        """Return the entries of a cell by seed."""
        found = {seed: self.get(cell.key(seed)) for seed in range(seeds)}
        return {seed: entry for seed, entry in found.items() if entry is not None}

    def add(self, entry: Mapping[str, Any]) -> None:
        """Write an entry, atomically; an entry with the same key is replaced, except for its other maps."""
        self.entries.mkdir(parents=True, exist_ok=True)
        content = {"schema": SCHEMA, **entry}
        before = self.get(str(entry["key"])) or {}
        if maps := {**before.get("maps", {}), **entry.get("maps", {})}:
            content["maps"] = maps
        atomic_write_text(self.entries / f"{entry['key']}.json", _to_text(content))
        self._read[str(entry["key"])] = content

    def rebuild_index(self) -> None:
        """Write the index anew from the entries."""
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        table.writerow(INDEX_COLUMNS)
        table.writerows(sorted(self._index_rows()))
        self.path.mkdir(parents=True, exist_ok=True)
        atomic_write_text(self.index, text.getvalue())

    def _index_rows(self) -> Iterator[tuple[str, ...]]:
        for key in self.keys():
            entry = self.get(key)
            if entry is not None:
                known = {**entry, **entry["metrics"], **entry["settings"]}
                yield tuple("" if known.get(name) is None else escape_cell(str(known[name])) for name in INDEX_COLUMNS)


def check_entry(entry: Any, key: str) -> None:
    """Check the types of an entry: numbers by name, and tables as columns of one length.

    Raises:
        ValueError: With the field.

    >>> check_entry({"key": "0a", "schema": 1, "settings": {}, "metrics": {"accuracy": "high"}}, "0a")
    Traceback (most recent call last):
    ValueError: metrics must contain numbers by name
    """
    if not isinstance(entry, dict) or entry.get("key") != key:
        raise ValueError("the key does not fit the file")
    if "schema" not in entry:
        raise ValueError("schema is missing")
    if not isinstance(entry.get("settings"), dict) or not isinstance(entry["settings"].get("data", ""), str):
        raise ValueError("settings must be an object")
    metrics = entry.get("metrics")
    if not isinstance(metrics, dict) or not all(map(_is_number, metrics.values())):
        raise ValueError("metrics must contain numbers by name")
    for name in ("classes", "train_classes", "epochs", "class_stats"):
        _check_columns(name, entry.get(name, {}))
    maps = entry.get("maps", {})
    if not isinstance(maps, dict):
        raise ValueError("maps must be an object")
    for name, each in maps.items():
        _check_map(name, each)
    corrupted = entry.get("corrupted", {})
    if not isinstance(corrupted, dict) or not all(
        isinstance(cells, list) and all(cell is None or _is_number(cell) for cell in cells)
        for cells in corrupted.values()
    ):
        raise ValueError("corrupted must contain lists of numbers by name")


def _check_map(name: str, content: Any) -> None:
    if not isinstance(content, dict) or not isinstance(content.get("points"), dict):
        raise ValueError(f"maps.{name} must contain points by class")
    for points in content["points"].values():
        if not isinstance(points, list) or not all(_is_number_list(point) and len(point) == 2 for point in points):
            raise ValueError(f"maps.{name} must contain points of two numbers")
    for field, value in content.items():
        if field == "boundary":
            if not _is_number_list(value) or len(value) != 3:
                raise ValueError(f"maps.{name}.boundary must contain three numbers")
        elif field != "points" and value is not None and not _is_number(value):
            raise ValueError(f"maps.{name}.{field} must be a number")


def _check_columns(name: str, columns: Any) -> None:
    if not isinstance(columns, dict) or not all(isinstance(column, list) for column in columns.values()):
        raise ValueError(f"{name} must contain columns")
    if len({len(column) for column in columns.values()}) > 1:
        raise ValueError(f"the columns of {name} must have one length")
    if columns and name.endswith("classes") and not {"name", "groups"} <= columns.keys():
        raise ValueError(f"{name} must have the columns name and groups")
    texts = {"name": _is_text, "groups": _is_text_list}
    for column, cells in columns.items():
        check = texts.get(column, _is_number_list if column.endswith("_quantiles") else _is_number)
        if not all(check(cell) or (cell is None and column not in ("name", "groups")) for cell in cells):
            raise ValueError(f"{name}.{column} has a value of another type")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_text_list(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_number_list(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_number, value))


def _to_text(content: Mapping[str, Any]) -> str:
    """Format with one line per top-level key: small files with readable diffs."""
    lines = [f"{json.dumps(name)}: {json.dumps(value, allow_nan=False)}" for name, value in content.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"
