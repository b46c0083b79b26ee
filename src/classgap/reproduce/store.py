"""The result store: a directory of plain files, one per run, and an index that can be rebuilt from them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from classgap._atomic_write import atomic_write_text
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
            entry = json.loads(path.read_text(encoding="utf-8"))
            if entry["key"] != key or not isinstance(entry["metrics"], dict):
                raise ValueError("the key does not fit the file")
            schema = entry["schema"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(f"{path} is damaged ({error}); delete it to run it again.") from None
        if schema != SCHEMA:
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
                yield tuple("" if known.get(name) is None else str(known[name]) for name in INDEX_COLUMNS)


def _to_text(content: Mapping[str, Any]) -> str:
    """Format with one line per top-level key: small files with readable diffs."""
    lines = [f"{json.dumps(name)}: {json.dumps(value, allow_nan=False)}" for name, value in content.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"
