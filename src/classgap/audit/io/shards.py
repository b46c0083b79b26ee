"""Predictions in several files: find them by a pattern, and join their arrays."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from classgap.audit.io.arrays import to_tensor
from classgap.audit.io.fields import NAMES, SAMPLE_COLUMNS
from classgap.audit.io.rows import Rows, stack_rows

LABEL_SETS = ("valid_labels", "valid_labels_offsets")
PER_SAMPLE = ("targets", "logits", "probabilities", "predictions", "predicted_names", "features", "index", "filename")


def find_shards(pattern: str | os.PathLike[str]) -> list[Path] | None:
    """Return the files that match a pattern such as ``preds-*.npz``, numbers in order; ``None`` if it is a plain path.

    Raises:
        ValueError: if no file matches, or files of several types do.
    """
    text = os.fspath(pattern)
    if not glob.has_magic(text) or Path(text).exists():
        return None
    files = sorted((Path(name) for name in glob.glob(text)), key=_natural)
    if not files:
        raise ValueError(f"{text} matches no file.")
    if len({file.suffix.lower() for file in files}) > 1:
        raise ValueError(f"{text} matches files of several types, such as {files[0].name} and {files[-1].name}.")
    return files


def join_shards(
    files: Sequence[Path], contents: Sequence[dict[str, Any]], columns: Sequence[str] = ()
) -> dict[str, Any]:
    """Join the arrays of several files: those with one entry per sample one below the other, others must be equal.

    Args:
        files: the files.
        contents: their arrays.
        columns: other arrays with one entry per sample.

    Raises:
        ValueError: if the files have different arrays or classes.
    """
    used = {*NAMES, "filename", "predicted_names", *columns} - ({*SAMPLE_COLUMNS.values()} - {*columns})
    contents = [{name: value for name, value in content.items() if name in used} for content in contents]
    first = contents[0]
    per_sample = {*PER_SAMPLE, *columns} & first.keys()
    for file, content in zip(files[1:], contents[1:], strict=True):
        _check_same(files[0], first, file, content, {*per_sample, *LABEL_SETS})
    joined = {name: value for name, value in first.items() if name not in (*per_sample, *LABEL_SETS)}
    joined |= {name: _stack([content[name] for content in contents]) for name in per_sample}
    return joined | _join_label_sets(contents)


def _join_label_sets(contents: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Join lists of valid labels, or flat arrays with their offsets."""
    if not all("valid_labels" in content for content in contents):
        return {}
    values = [content["valid_labels"] for content in contents]
    if not all("valid_labels_offsets" in content for content in contents):
        return {"valid_labels": [labels for value in values for labels in value]}
    offsets, start = [np.zeros(1, dtype=np.int64)], 0
    for content, value in zip(contents, values, strict=True):
        own = np.asarray(content["valid_labels_offsets"])
        if own.ndim != 1 or own.dtype.kind not in "iu" or len(own) != len(content["targets"]) + 1:
            raise ValueError("valid_labels_offsets of each shard must be integers of shape (n_samples + 1,).")
        if own[0] != 0 or own[-1] != len(value):
            raise ValueError(
                f"valid_labels_offsets of each shard must rise from 0 to the number of its valid_labels, {len(value)}, "
                f"got {own[0]} to {own[-1]}."
            )
        offsets.append(own[1:].astype(np.int64) + start)
        start += len(value)
    return {
        "valid_labels": np.concatenate([np.asarray(value) for value in values]),
        "valid_labels_offsets": np.concatenate(offsets),
    }


def _check_same(
    first_file: Path, first: dict[str, Any], file: Path, content: dict[str, Any], per_sample: set[str]
) -> None:
    between = f"{first_file.name} and {file.name}"
    if first.keys() != content.keys():
        name = sorted(first.keys() ^ content.keys())[0]
        only = first_file.name if name in first else file.name
        raise ValueError(f"shards must have the same arrays, but only one of {between} has {name}: {only}.")
    for name in ("logits", "probabilities", "features"):
        columns = [np.shape(each[name])[1:] for each in (first, content) if name in each]
        if len(set(columns)) > 1:
            counts = " and ".join(str(shape[0]) if shape else "no" for shape in columns)
            of = "features" if name == "features" else "classes"
            raise ValueError(f"shards must have the same {of}, but {name} of {between} have {counts} columns.")
    for name in sorted(first.keys() - {*LABEL_SETS}):
        kinds = [_kind(each[name]) for each in (first, content)]
        if kinds[0] != kinds[1]:
            raise ValueError(f"shards must have the same types, but {name} of {between} are {' and '.join(kinds)}.")
    for name in first.keys() - per_sample:
        if not np.array_equal(_as_array(first[name]), _as_array(content[name])):
            of = "classes" if name == "class_names" else "values"
            raise ValueError(f"shards must have the same {of}, but {name} of {between} differ.")


def _stack(values: Sequence[Any]) -> Any:
    if all(isinstance(value, Tensor | Rows) or np.ndim(value) == 2 for value in values) and len(values[0].shape) == 2:
        return stack_rows([value if isinstance(value, Rows) else to_tensor("shards", value) for value in values])
    return np.concatenate([_as_array(value) for value in values])


def _as_array(value: Any) -> Any:
    if isinstance(value, Tensor):  # numpy has no bfloat16
        return (value.double() if value.is_floating_point() else value).numpy()
    return np.asarray(value)


def _kind(value: Any) -> str:
    """Return "numbers" or "texts", which can be joined with their kind, or the name of another type."""
    if isinstance(value, Tensor | Rows):
        return "numbers"
    dtype = np.asarray(value).dtype
    return {"b": "numbers", "i": "numbers", "u": "numbers", "f": "numbers", "U": "texts", "S": "texts"}.get(
        dtype.kind, str(dtype)
    )


def _natural(path: Path) -> list[tuple[int, int | str]]:
    """Sort key that puts shard 10 after shard 2."""
    parts = re.split(r"(\d+)", str(path))
    return [(0, int(part)) if part.isdigit() else (1, part) for part in parts]
