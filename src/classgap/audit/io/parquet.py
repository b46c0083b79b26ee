"""Read prediction files in Parquet, row group by row group.

Columns, one row per sample:

- ``target`` (also ``targets``, ``label``, ``labels``): class index or class name.
- ``prediction`` (also ``predictions``, ``pred``, ``preds``, ``predicted_label``): class index or class name; or a list
  column ``logits`` or ``probabilities`` with one number per class.
- ``features``, optional: a list column.
- ``index``, optional: the sample's position in the test set.
- ``filename`` and ``text``, optional: the sample itself, for thumbnails.
- ``valid_labels``, optional: lists of the labels that are right for the sample, or texts such as "a|b".

Files of timm's ``inference.py`` have the columns of its CSV files. Class names are taken from a JSON list in the file's
metadata (key ``class_names``) or from the ``ClassLabel`` of a Hugging Face dataset. Other columns are ignored with a
notice.

Scores and features are decoded once. If they are large, into a temporary file that is mapped into memory.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from classgap.audit.io.csv import Content, split_labels
from classgap.audit.io.csv_layouts import LABELS, PREDICTED, is_timm, timm_content
from classgap.audit.io.fields import SAMPLE_COLUMNS
from classgap.audit.io.labels import parse_names
from classgap.audit.io.rows import MAX_COPIED
from classgap.audit.io.wanted import NOTHING, Wanted
from classgap.audit.results import Notice

BATCH_ROWS = 4096
COLUMNS = {
    "targets": ("target", "targets", *LABELS),
    "logits": ("logits",),
    "probabilities": ("probabilities",),
    "predictions": PREDICTED,
    "features": ("features",),
    "index": ("index",),
}
MATRICES = ("logits", "probabilities", "features")
LABEL_SETS = ("valid_labels",)


def read_parquet(path: Path, wanted: Wanted = NOTHING) -> Content:
    """Read a Parquet file into arrays, named as in an ``.npz`` file, and notices.

    Args:
        path: file to read.
        wanted: further columns to keep.

    Raises:
        ValueError: if pyarrow is not installed, the file is damaged, or a column is missing or invalid. The message
            does not contain the path.
    """
    pa, pq = import_pyarrow()
    try:
        with pq.ParquetFile(path) as file:
            return _read(file, pa.types, wanted)
    except pa.ArrowException as error:
        raise ValueError(f"not a valid Parquet file: {str(error).splitlines()[0].rstrip('.')}.") from None


def import_pyarrow() -> tuple[Any, Any]:
    """Return the modules ``pyarrow`` and ``pyarrow.parquet``, or say how to install them."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise ValueError('Parquet files need pyarrow: pip install "classgap[parquet]".') from None
    return pa, pq


def _read(file: Any, types: Any, extra: Wanted) -> Content:
    names = list(file.schema_arrow.names)
    extra.check(names)
    if is_timm([name for name in names if not name.startswith("__index")]):
        table = {name: list(map(_text, values)) for name, values in file.read().to_pydict().items()}
        return {name: table[name] for name in extra.names} | timm_content(table), ()
    found = {field: [name for name in names if name in columns] for field, columns in COLUMNS.items()}
    for field, columns in found.items():
        if len(columns) > 1:
            raise ValueError(f"the columns {' and '.join(columns)} both hold {field}: keep one.")
    if not any(found[kind] for kind in ("logits", "probabilities", "predictions")):
        shown = ", ".join(names[:6]) or "nothing"
        raise ValueError(f"column prediction, logits or probabilities is missing, found {shown}.")
    if found["logits"] or found["probabilities"]:
        found["predictions"] = []  # follow from the scores
    if file.metadata.num_rows == 0:
        raise ValueError("the file has no rows.")
    wanted = {columns[0]: field for field, columns in found.items() if columns}
    wanted |= {name: name for name in (*extra.names, *LABEL_SETS) if name in names}
    content: dict[str, Any] = {}
    parts: dict[str, list[NDArray[Any]]] = {
        field: [] for field in wanted.values() if field not in (*MATRICES, *LABEL_SETS)
    }
    done = 0
    for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=list(wanted)):
        for column, field in wanted.items():
            values = batch.column(column)
            if values.null_count and field not in (*extra.slices, *LABEL_SETS):
                raise ValueError(f"column {column} must not have missing values, got {values.null_count}.")
            if field in LABEL_SETS:
                content.setdefault(field, []).extend(_label_set(value) for value in values.to_pylist())
                continue
            if field in parts:
                parts[field].append(values.to_numpy(zero_copy_only=False))
                continue
            rows_BK = _matrix(column, values, types)
            if field not in content:
                content[field] = _allocate(file.metadata.num_rows, rows_BK)
            if rows_BK.shape[1] != content[field].shape[1]:
                raise ValueError(_ragged(column, content[field].shape[1], rows_BK.shape[1]))
            content[field][done : done + len(rows_BK)] = rows_BK
        done += len(batch)
    content |= {field: np.concatenate(values) for field, values in parts.items()}
    if (class_names := _class_names(file.schema_arrow, found["targets"])) is not None:
        content["class_names"] = class_names
    known = (*wanted, *SAMPLE_COLUMNS)
    unused = tuple(name for name in names if name not in known and not name.startswith("__index"))
    return content, (Notice("unused-columns", {"names": unused}),) if unused else ()


def _matrix(column: str, values: Any, types: Any) -> NDArray[Any]:
    """Return a list column as a matrix; ``types`` is ``pyarrow.types``."""
    kind = values.type
    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
        raise ValueError(f"column {column} must hold lists of numbers, one per class or feature, got {kind}.")
    flat = values.flatten()
    if flat.null_count or not (types.is_floating(flat.type) or types.is_integer(flat.type)):
        raise ValueError(f"column {column} must hold lists of numbers, got {kind} with {flat.null_count} missing.")
    lengths = np.unique(values.value_lengths().to_numpy(zero_copy_only=False))
    if len(lengths) > 1:
        raise ValueError(_ragged(column, int(lengths[0]), int(lengths[-1])))
    return flat.to_numpy(zero_copy_only=False).reshape(len(values), int(lengths[0]))


def _ragged(column: str, one: int, other: int) -> str:
    return f"column {column} must hold lists of equal length, got {one} and {other} numbers."


def _allocate(rows: int, example_BK: NDArray[Any]) -> NDArray[Any]:
    """Return an array for all rows, in a temporary file if it is large; the file is deleted with the last reference."""
    kind = example_BK.dtype if example_BK.dtype.kind == "f" else np.dtype(np.float32)
    shape = (rows, example_BK.shape[1])
    if rows * example_BK.shape[1] <= MAX_COPIED:
        return np.empty(shape, kind)
    with tempfile.TemporaryFile(prefix="classgap-") as file:
        return np.memmap(file, kind, "w+", shape=shape)


def _class_names(schema: Any, targets: list[str]) -> list[Any] | None:
    metadata = schema.metadata or {}
    if b"class_names" in metadata:
        return parse_names(metadata[b"class_names"])
    try:
        features = json.loads(metadata[b"huggingface"])["info"]["features"]
        names = features[targets[0]]["names"]
    except (KeyError, IndexError, TypeError, ValueError, RecursionError):  # not of Hugging Face, or not a ClassLabel
        return None
    return names if isinstance(names, list) else None


def _label_set(value: Any) -> list[Any]:
    return split_labels(value) if isinstance(value, str) else [] if value is None else list(value)


def _text(value: Any) -> str:
    return f"[{' '.join(map(repr, value))}]" if isinstance(value, list) else str(value)
