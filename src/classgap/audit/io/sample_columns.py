"""Filenames and texts of the samples in a prediction file or in several, by sample id.

An ``.npz`` file holds them as arrays ``filenames`` and ``texts``, a ``.safetensors`` file as JSON lists in its
metadata, and CSV and Parquet files as columns ``filename`` and ``text``. The audit itself does not use them.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

from classgap._array_files import map_npz
from classgap.audit._types import SampleId
from classgap.audit.io.fields import SAMPLE_COLUMNS
from classgap.audit.io.labels import is_text
from classgap.audit.io.parquet import import_pyarrow
from classgap.audit.io.sample_ids import encode_ids, hashed_ids
from classgap.audit.io.shards import find_shards


def read_sample_column(path: Path, name: str, key: str | None = None) -> dict[SampleId, str] | None:
    """Return the texts of a column by sample: by ``index`` if the file has it, otherwise by row.

    Args:
        path: prediction file that was read before, so that its format is known to be valid, or a pattern of files.
        name: "filenames" or "texts".
        key: array or column with the sample ids, if not ``index``.

    Returns:
        The texts, without empty ones; of a repeated id, the first. ``None`` if a file has no such column.

    Raises:
        ValueError: if the column does not have one text per sample.
    """
    texts: list[str] = []
    ids: list[SampleId] = []
    for file in find_shards(path) or [path]:
        reader = READERS.get(file.suffix.lower())
        values, index, samples = (None, None, 0) if reader is None else reader(file, name, key or "index")
        if values is None:
            return None
        if len(values) != samples:
            raise ValueError(f"{file}: {name} and targets must have the same length, got {len(values)} and {samples}.")
        ids.extend(range(len(ids), len(ids) + samples) if index is None else _plain(index))
        texts.extend(values)
    found: dict[SampleId, str] = {}
    for sample, text in zip(ids, texts, strict=True):
        if text:
            found.setdefault(sample, text)
    return found


def _plain(index: Any) -> list[SampleId]:
    """Ids as strings or integers; integers that are written as text are integers."""
    if not is_text(index):
        return [int(number) for number in np.asarray(index)]
    codes_N = encode_ids(index)
    hashed = hashed_ids(index, codes_N)
    return [hashed.get(code, code) for code in codes_N.tolist()]


Column = tuple[list[str] | None, Any, int]  # texts, sample numbers, number of samples


def _from_npz(path: Path, name: str, key: str) -> Column:
    archive = map_npz(path, {name, key, "targets"}.__contains__)
    values, targets = archive.get(name), archive.get("targets")
    if values is None or targets is None:
        return None, None, 0
    if values.ndim != 1 or values.dtype.kind not in "US":
        raise ValueError(f"{path}: {name} must be a list of strings, got shape {values.shape} of {values.dtype}.")
    if values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8", "replace")
    return values.tolist(), archive.get(key), len(targets)


def _from_safetensors(path: Path, name: str, key: str) -> Column:
    from safetensors import safe_open

    with safe_open(path, framework="pt") as archive:
        text = (archive.metadata() or {}).get(name)
        if text is None:
            return None, None, 0
        try:
            values = json.loads(text)
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise ValueError(f"{path}: {name} in the metadata must be a JSON list of strings.")
        index = archive.get_tensor(key).numpy() if key in archive.keys() else values if key == name else None  # noqa: SIM118
        return values, index, len(archive.get_tensor("targets"))


def _from_csv(path: Path, name: str, key: str) -> Column:
    column = next(column for column, array in SAMPLE_COLUMNS.items() if array == name)
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(file)
        header = [cell.strip() for cell in next(rows)]
        if column not in header:
            return None, None, 0
        cells = [row for row in rows if row]
    index = [row[header.index(key)].strip() for row in cells] if key in header else None
    return [row[header.index(column)].strip() for row in cells], index, len(cells)


def _from_parquet(path: Path, name: str, key: str) -> Column:
    _, pq = import_pyarrow()
    column = next(column for column, array in SAMPLE_COLUMNS.items() if array == name)
    with pq.ParquetFile(path) as file:
        present = [each for each in (column, key) if each in file.schema_arrow.names]
        if column not in present:
            return None, None, 0
        table = file.read(columns=sorted(set(present))).to_pydict()
    values = ["" if value is None else str(value) for value in table[column]]
    return values, table.get(key), len(values)


READERS = {".parquet": _from_parquet, ".npz": _from_npz, ".safetensors": _from_safetensors, ".csv": _from_csv}
