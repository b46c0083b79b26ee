"""Conversion from and to pandas, which is imported only when needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from classgap.audit.io.arrays import to_tensor
from classgap.audit.io.labels import BINARY, are_integers, is_text


def names_from_columns(*scores: Any) -> tuple[str, ...] | None:
    """Column names of the first DataFrame among ``scores``, or ``None``."""
    for values in scores:
        if hasattr(values, "columns") and hasattr(values, "to_numpy"):
            return tuple(str(name) for name in values.columns)
    return None


def integers_as_names(values: Any, class_names: Sequence[str] | None) -> Any:
    """Return integer labels as names if all columns of a DataFrame are named by integers; anything else unchanged.

    The columns of ``DataFrame(probabilities, columns=classifier.classes_)`` may be 1 to K, and the labels too.

    >>> integers_as_names([1, 2], ("1", "2")).tolist(), integers_as_names([1, 0], ("cat", "dog"))
    (['1', '2'], [1, 0])
    """
    if values is None or class_names is None or not are_integers(class_names):
        return values
    array = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    if array.dtype.kind == "f" and np.isfinite(array).all() and (array == np.floor(array)).all():
        array = array.astype(np.int64)
    return array.astype(str) if array.ndim == 1 and array.dtype.kind in "iu" else values


def check_target_column(targets: Any, class_names: Sequence[str] | None) -> None:
    """Reject a DataFrame of scores that still contains the column of targets.

    Raises:
        ValueError: if ``targets`` is a Series that is named like a column.
    """
    name = getattr(targets, "name", None)
    if isinstance(name, str) and name in (class_names or ()):
        raise ValueError(
            f"the DataFrame of scores still has the column of targets, {name!r}: drop it, so that each column is a "
            "class."
        )


def counts_in_class_order(counts: Any, class_names: Sequence[Any] | None) -> Any:
    """Sort a Series of counts, such as ``labels.value_counts()``, by class; return anything else unchanged.

    Raises:
        ValueError: if its index is neither the class names nor the class indices.
    """
    if not (hasattr(counts, "to_numpy") and hasattr(counts, "index")) or hasattr(counts, "columns"):
        return counts
    position = {str(label): i for i, label in enumerate(counts.index)}
    indices = [str(k) for k in range(len(counts))]
    for names in ([str(name) for name in class_names or ()], indices):
        if len(names) == len(counts) and position.keys() == set(names):
            return counts.to_numpy()[[position[name] for name in names]]
    raise ValueError(
        f"train_counts is a Series, so its index must be the class names or 0 to {len(counts) - 1}, got "
        f"{', '.join(map(repr, list(counts.index)[:5]))}: reindex it, or pass an array."
    )


def check_scores(what: str, scores: Any, targets: Any = None) -> None:
    """Reject a vector where scores are expected.

    Raises:
        ValueError: if ``scores`` has one dimension, with what it seems to be.
    """
    if _dimensions(scores) != 1:
        return
    wanted = f"{what} must be scores of shape (n_samples, n_classes), got a vector of {len(scores)}"
    if _dimensions(targets) == 2:
        raise ValueError(f"{wanted}: {what} and targets are swapped; pass the {what} first.")
    if not is_text(scores) and bool((to_tensor(what, scores) % 1 != 0).any()):
        raise ValueError(f"{wanted}: {BINARY}.")
    raise ValueError(f"{wanted}. Pass labels by keyword: Audit.from_predictions(targets=..., predictions=...).")


def _dimensions(values: Any) -> int | None:
    """Return the number of dimensions of an array or list, 2 if it has more; ``None`` if it is neither."""
    found = getattr(values, "ndim", None)
    if found is None and isinstance(values, Sequence) and not isinstance(values, str):
        return 2 if len(values) and hasattr(values[0], "__len__") and not isinstance(values[0], str) else 1
    return None if found is None else min(found, 2)


def to_frame(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Any:
    """Return a DataFrame with one row per class, indexed by class name.

    Raises:
        ImportError: if pandas is not installed.
    """
    try:
        import pandas
    except ImportError:
        raise ImportError("to_pandas needs pandas: pip install 'classgap[pandas]'.") from None
    frame = pandas.DataFrame(rows, columns=list(columns)).set_index("name")
    for name in frame.columns:
        if not any(isinstance(entry[name], str) for entry in rows) and frame[name].isna().any():
            frame[name] = frame[name].astype(float)  # None becomes NaN
    frame.index.name = "class"
    return frame
