"""Arrays in separate files next to the predictions: targets, features and training counts.

``.npy`` holds one array and is mapped into memory; a pattern joins several. ``.json`` holds a list, ``.txt`` one value
per line. ``.csv`` holds one column of values, or a first column that they belong to: file names for targets, class
names for training counts (in JSON: an object).
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from classgap._array_files import map_npy
from classgap._regular_files import check_regular_file
from classgap.audit.io.arrays import to_tensor
from classgap.audit.io.labels import are_integers, infer_class_names
from classgap.audit.io.rows import stack_rows
from classgap.audit.io.shards import find_shards

TARGETS_ADVICE = (  # only classgap audit has the option
    "with classgap audit --targets FILE (targets= of Audit.from_file), and pass the audit that its --json saves to "
    "compare, gate, history and --rank-by"
)
ENDINGS = (".npy", ".json", ".txt", ".csv")


def read_companion(name: str, path: str | os.PathLike[str]) -> Any:
    """Read one array, or a mapping from names to values.

    Raises:
        ValueError: if the file cannot be read; the message starts with the path.
    """
    files = find_shards(path) or [Path(path)]
    values = [_read_one(name, file) for file in files]
    if len(values) == 1:
        return values[0]
    if any(isinstance(value, Mapping) for value in values):
        raise ValueError(f"{path} must match one file: {name} by class or file name cannot be split into several.")
    if all(np.ndim(value) == 2 for value in values):
        if len({np.shape(value)[1] for value in values}) > 1:
            raise ValueError(f"{path}: shards of {name} must have the same number of columns.")
        return stack_rows([to_tensor(name, value) for value in values])
    return np.concatenate([np.asarray(value) for value in values])


def _read_one(name: str, file: Path) -> Any:
    ending = file.suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(
            f"{file} must end in {', '.join(ENDINGS)} to hold {name}, got {ending or 'no file extension'}."
        )
    check_regular_file(file)
    if not file.is_file():
        raise ValueError(f"{file} does not exist.")
    try:
        if ending == ".npy":
            return map_npy(file)
        text = file.read_text(encoding="utf-8-sig")
        if ending == ".json":
            return _from_json(name, text)
        return _from_lines(text.splitlines()) if ending == ".txt" else _from_csv(name, text)
    except (ValueError, RecursionError, csv.Error) as error:
        raise ValueError(f"{file} does not hold {name}: {str(error).rstrip('.')}.") from None
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror or 'it is damaged'}.") from None


def _from_json(name: str, text: str) -> Any:
    value = json.loads(text)
    if isinstance(value, dict):
        return {str(key): entry for key, entry in value.items()}
    if not isinstance(value, list):
        raise ValueError("it must be a list" + (" or an object" if name == "train_counts" else ""))
    return _numbers_or_text([str(entry) for entry in value])


def _from_csv(name: str, text: str) -> Any:
    rows = [[cell.strip() for cell in row] for row in csv.reader(text.splitlines(), strict=True) if row]
    if rows and rows[0][0] == "" and len(rows[0]) > 1:  # the row numbers of a DataFrame
        rows = [row[1:] for row in rows]
    if len(rows) < 2 or len({len(row) for row in rows}) > 1 or len(rows[0]) > 2:
        raise ValueError("it must have a header and one or two columns")
    if len(rows[0]) == 1:
        return _from_lines([row[0] for row in rows[1:]])
    keys = [key for key, _ in rows[1:]]
    if len(set(keys)) < len(keys):
        repeated = next(key for i, key in enumerate(keys) if key in keys[:i])
        raise ValueError(f"{repeated!r} in column {rows[0][0]!r} appears more than once")
    return dict(zip(keys, (value for _, value in rows[1:]), strict=True))


def _from_lines(lines: Sequence[str]) -> Any:
    return _numbers_or_text([line.strip() for line in lines if line.strip()])


def _numbers_or_text(values: Sequence[str]) -> Any:
    array = np.array(values)
    for kind in (np.int64, np.float64):
        try:
            return array.astype(kind)
        except (ValueError, OverflowError):  # text, or more than 64 bits
            continue
    return array


def add_companions(content: dict[str, Any], companions: Mapping[str, Any]) -> dict[str, Any]:
    """Add companions to the arrays of a prediction file, in the order of its samples and classes.

    Raises:
        ValueError: if the file already has one of them, or a mapping does not fit.
    """
    content = dict(content)
    for name, value in companions.items():
        if name in content:
            raise ValueError(f"the prediction file already has {name}: do not pass it again.")
        content[name] = value
    files = content.get("filename")  # kept: it may be the key or a slice
    if files is not None and "targets" not in content:
        raise ValueError(
            "targets is missing, because timm's inference.py writes no true labels: give them in the same order or by "
            f"file name, {TARGETS_ADVICE}."
        )
    if isinstance(content.get("targets"), Mapping):
        content["targets"] = _by_file(content["targets"], files)
    names = content.pop("predicted_names", None)
    if names is not None and not are_integers(np.unique(np.asarray(content["targets"]).astype(str)).tolist()):
        content["predictions"] = names
    for name in ("targets", "predictions"):  # labels of both kinds are compared as text
        if "predictions" in content and np.asarray(content["predictions"]).dtype.kind == "U" and name in content:
            content[name] = np.asarray(content[name]).astype(str)
    if "train_counts" in companions and not isinstance(content["train_counts"], Mapping):
        _check_unnamed(content)
    if isinstance(content.get("train_counts"), Mapping):
        content |= _by_class(content["train_counts"], content)
    return content


def _check_unnamed(content: Mapping[str, Any]) -> None:
    if "class_names" in content or "predictions" not in content:
        return
    names = infer_class_names(*(content[name] for name in ("targets", "predictions") if name in content))
    if not are_integers(names):
        raise ValueError(
            "train_counts must name the classes, because the predictions do: use a CSV file with the columns class and "
            'count, or JSON {"class": count, ...}.'
        )


def _by_file(targets: Mapping[str, Any], files: Any) -> Any:
    if files is None:
        raise ValueError(
            "targets are given by file name, but the predictions have no file names: pass one target per sample, in "
            "the order of the predictions."
        )
    by_name = {**{Path(name).name: value for name, value in targets.items()}, **targets}
    names = [str(name) for name in files]
    missing = [name for name in names if name not in by_name and Path(name).name not in by_name]
    if missing:
        raise ValueError(f"targets has no label for {missing[0]!r} ({len(missing)} of {len(names)} are missing).")
    return _numbers_or_text([str(by_name.get(name, by_name.get(Path(name).name))) for name in names])


def _by_class(counts: Mapping[str, Any], content: Mapping[str, Any]) -> dict[str, Any]:
    """Training counts in the order of the classes; without class names, the classes are the names that occur."""
    names = content.get("class_names")
    if names is None and "predictions" in content:
        columns = [content[name] for name in ("targets", "predictions") if name in content]
        names = infer_class_names(*columns, list(counts))
    elif names is None:
        names = [str(k) for k in range(len(counts))]
    missing = [str(name) for name in names if str(name) not in counts]
    if missing:
        raise ValueError(f"train_counts has no count for class {missing[0]!r} ({len(missing)} are missing).")
    try:
        values = np.array([float(counts[str(name)]) for name in names])
    except (TypeError, ValueError, OverflowError):
        raise ValueError("train_counts must be numbers, one per class.") from None
    return {"class_names": list(names), "train_counts": values}
