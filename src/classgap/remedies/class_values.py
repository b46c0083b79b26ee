"""Costs and priors of classes: from mappings by class name, and from ``.csv``, ``.json`` and ``.npy`` files."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from classgap._array_files import map_npy
from classgap._csv_cells import is_number
from classgap._regular_files import check_regular_file
from classgap.audit._types import Floats
from classgap.audit.io.arrays import to_tensor
from classgap.audit.serialization import read_json
from classgap.registry import nearest

Kind = Literal["costs", "priors"]


def check_costs(costs: Any, class_names: Sequence[str]) -> Floats | None:
    """Check a cost matrix (K, K), or a mapping from true to predicted classes to costs.

    Costs missing in a mapping are 1, and 0 on the diagonal.

    Raises:
        ValueError: if the shape is wrong, a class is unknown, or a cost is negative, not finite or no number.
    """
    if costs is None:
        return None
    classes = len(class_names)
    if isinstance(costs, Mapping):
        costs = _costs_from_mapping(costs, class_names)
    cost_KK = to_tensor("costs", costs).double().numpy()
    if cost_KK.shape != (classes, classes):
        raise ValueError(f"costs must have shape ({classes}, {classes}), rows are true classes; got {cost_KK.shape}.")
    if not np.isfinite(cost_KK).all() or (cost_KK < 0).any():
        row, column = np.argwhere(~(np.isfinite(cost_KK) & (cost_KK >= 0)))[0]
        raise ValueError(f"costs must be finite and not negative, got {cost_KK[row, column]} at [{row}, {column}].")
    return cost_KK


def check_priors(priors: Any, class_names: Sequence[str]) -> Floats | None:
    """Check class frequencies (K,), or a mapping by class name, and scale them to sum to 1.

    Raises:
        ValueError: if the shape is wrong, a class is missing or unknown, or a prior is not positive or no number.

    >>> check_priors([1, 3], ["a", "b"]).tolist()
    [0.25, 0.75]
    """
    if priors is None:
        return None
    if isinstance(priors, Mapping):
        priors = _priors_from_mapping(priors, class_names)
    prior_K = to_tensor("priors", priors).double().numpy()
    if prior_K.shape != (len(class_names),):
        raise ValueError(f"priors must have shape ({len(class_names)},), one per class; got {prior_K.shape}.")
    bad = np.flatnonzero(~(np.isfinite(prior_K) & (prior_K > 0)))
    if len(bad):
        raise ValueError(f"priors must be positive, got {prior_K[bad[0]]} for class {class_names[bad[0]]!r}.")
    return prior_K / prior_K.sum()


def _costs_from_mapping(costs: Mapping[str, Any], class_names: Sequence[str]) -> Floats:
    """Return the cost matrix (K, K)."""
    _check_names("costs", costs, class_names)
    cost_KK = 1 - np.eye(len(class_names))
    at = {name: k for k, name in enumerate(class_names)}
    for true, row in costs.items():
        if not isinstance(row, Mapping):
            raise ValueError(f"costs[{true!r}] must map predicted classes to costs, got {row!r}.")
        _check_names(f"costs[{true!r}]", row, class_names)
        for predicted, cost in row.items():
            cost_KK[at[true], at[predicted]] = _number(f"costs[{true!r}][{predicted!r}]", cost)
    return cost_KK


def _priors_from_mapping(priors: Mapping[str, Any], class_names: Sequence[str]) -> Floats:
    """Return the prior of each class."""
    _check_names("priors", priors, class_names)
    missing = [name for name in class_names if name not in priors]
    if missing:
        raise ValueError(f"priors must have a value for each class, but class {missing[0]!r} has none.")
    return np.array([_number(f"priors[{name!r}]", priors[name]) for name in class_names])


def read_class_values(path: str | os.PathLike[str], kind: Kind) -> Any:
    """Read costs or priors from a file, as an array or as a mapping by class name.

    ``.json`` holds a list, or a mapping as for :func:`check_costs` and :func:`check_priors`. ``.csv`` holds
    numbers only, or names too: priors as rows "class,prior", costs as a table with the true classes in the first column
    and the predicted ones in the first row; empty cells are missing costs.

    Raises:
        ValueError: if the file cannot be read.
    """
    source = Path(path)
    if source.suffix.lower() not in (".csv", ".json", ".npy"):
        raise ValueError(f"{kind} must be a .csv, .json or .npy file, got {source}.")
    check_regular_file(source)
    if not source.is_file():
        raise ValueError(f"{source} does not exist.")
    try:
        match source.suffix.lower():
            case ".json":
                return read_json(source)
            case ".npy":
                return _read_npy(source)
            case _:
                return _read_csv(source, kind)
    except UnicodeDecodeError:
        raise ValueError(f"{source} is not UTF-8 text.") from None
    except OSError as error:
        raise ValueError(f"{source} cannot be read: {error.strerror or 'it is damaged'}.") from None


def _read_npy(source: Path) -> Floats:
    try:
        values = map_npy(source)
    except ValueError:
        raise ValueError(f"{source} is not an array of numbers: save it with numpy.save.") from None
    if values.dtype.kind not in "iuf":
        raise ValueError(f"{source} must contain one array of numbers.")
    return values.astype(np.float64)


def _read_csv(source: Path, kind: Kind) -> Any:
    with source.open(newline="", encoding="utf-8-sig") as file:
        rows = [[cell.strip() for cell in row] for row in csv.reader(file)]
    rows = [row for row in rows if any(row)]
    if not rows:
        raise ValueError(f"{source} is empty.")
    widths = {len(row) for row in rows}
    if len(widths) > 1:
        raise ValueError(f"{source}: all rows must have the same number of cells, got {sorted(widths)}.")
    try:
        if kind == "priors":
            return _priors_from_rows(rows)
        return _costs_from_rows(rows)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None


def _priors_from_rows(rows: list[list[str]]) -> Any:
    if len(rows) == 1 or len(rows[0]) == 1:
        return np.array([_number("prior", cell) for row in rows for cell in row])
    if len(rows[0]) != 2:
        raise ValueError(f"priors must have the columns class and prior, got {len(rows[0])} columns.")
    if not is_number(rows[0][1]):
        rows = rows[1:]  # a header
    _check_unique(row[0] for row in rows)
    return {name: _number(f"prior of {name!r}", cell) for name, cell in rows}


def _costs_from_rows(rows: list[list[str]]) -> Any:
    if all(is_number(cell) for row in rows for cell in row):
        return np.array([[float(cell) for cell in row] for row in rows])
    predicted = rows[0][1:]
    _check_unique(predicted)
    _check_unique(row[0] for row in rows[1:])
    return {
        row[0]: {
            name: _number(f"cost of {name!r} for {row[0]!r}", cell)
            for name, cell in zip(predicted, row[1:], strict=True)
            if cell
        }
        for row in rows[1:]
    }


def _check_unique(names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"class {name!r} occurs twice.")
        seen.add(name)


def _check_names(what: str, given: Mapping[str, Any], class_names: Sequence[str]) -> None:
    for name in given:
        if name not in class_names:
            near = nearest(str(name), class_names)
            raise ValueError(f"{what} has the unknown class {name!r}{f'; did you mean {near!r}?' if near else '.'}")


def _number(what: str, value: Any) -> float:
    if not isinstance(value, bool):
        try:
            return float(value)
        except (TypeError, ValueError):
            pass
    raise ValueError(f"{what} must be a number, got {value!r}.")
