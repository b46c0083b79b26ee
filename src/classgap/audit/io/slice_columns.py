"""Metadata columns that divide the samples into slices, such as camera, site or language."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from classgap.audit._types import Integers
from classgap.audit.io.fields import NAMES
from classgap.registry import nearest

MAX_VALUES = 1000  # more distinct values are ids or measurements, not categories
EMPTY = "(empty)"


@dataclass(frozen=True, eq=False)
class SliceColumn:
    """A column of categories: ``values[codes_N[i]]`` is the slice of sample i."""

    codes_N: Integers
    values: tuple[str, ...]


def check_slice_names(slices: Iterable[str], found: Iterable[str]) -> None:
    """Check that a file contains the columns that divide its samples.

    Raises:
        ValueError: if a column is missing, or is part of the predictions.
    """
    for name in slices:
        if name in (*NAMES, "target", "prediction"):
            raise ValueError(
                f"slices must name metadata of the samples, got {name!r}, which is part of the predictions."
            )
        others = sorted(set(found) - {*NAMES, "target", "prediction"})
        if name not in others:
            near = nearest(name, others)
            listed = f"columns to choose from: {', '.join(others[:6])}." if others else "it has no metadata columns."
            hint = f"did you mean {near}?" if near else listed
            raise ValueError(f"slices names {name!r}, which the file does not contain; {hint}")


def check_slices(slices: Any, n_samples: int) -> dict[str, SliceColumn]:
    """Convert one column, or a mapping from name to column, to categories; one column is named "slice".

    Raises:
        ValueError: if a column does not have one value per sample, or more than ``MAX_VALUES`` distinct ones.

    >>> found = check_slices({"camera": ["b", "a", "b"]}, 3)
    >>> found["camera"].values, found["camera"].codes_N.tolist()
    (('a', 'b'), [1, 0, 1])
    """
    columns = slices if isinstance(slices, Mapping) else {"slice": slices}
    if not columns:
        raise ValueError("slices must have at least one column, got an empty mapping.")
    return {str(name): _categories(_label(slices, name), column, n_samples) for name, column in columns.items()}


def _label(slices: Any, name: Any) -> str:
    return f"slices[{name!r}]" if isinstance(slices, Mapping) else "slices"


def _categories(what: str, column: Any, n_samples: int) -> SliceColumn:
    values = column.detach().cpu().numpy() if isinstance(column, Tensor) else np.asarray(column)
    if values.ndim != 1 or len(values) != n_samples:
        raise ValueError(f"{what} must have shape ({n_samples},), one value per sample, got shape {values.shape}.")
    texts = np.array([_text(value) for value in values.tolist()])
    distinct, codes_N = np.unique(texts, return_inverse=True)
    if len(distinct) > MAX_VALUES:
        raise ValueError(
            f"{what} must be categorical, with at most {MAX_VALUES} distinct values, got {len(distinct)}: bin or group "
            "them."
        )
    return SliceColumn(codes_N.astype(np.int64), tuple(distinct.tolist()))


def _text(value: Any) -> str:
    """The name of a slice; missing values are a slice, too."""
    missing = value is None or (isinstance(value, float) and np.isnan(value))
    return EMPTY if missing else str(value).strip() or EMPTY
