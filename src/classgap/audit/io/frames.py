"""pandas in and out, without importing it unless a table is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from classgap.audit.figures import Figure, column_names, column_values


def names_from_columns(*scores: Any) -> tuple[str, ...] | None:
    """Column names of the first DataFrame among ``scores``, or ``None``."""
    for values in scores:
        if hasattr(values, "columns") and hasattr(values, "to_numpy"):
            return tuple(str(name) for name in values.columns)
    return None


def check_scores(what: str, scores: Any) -> None:
    """Reject a vector of labels where scores are expected.

    Raises:
        ValueError: if ``scores`` has one dimension.
    """
    dimensions = getattr(scores, "ndim", None)
    if dimensions is None and isinstance(scores, Sequence) and not isinstance(scores, str):
        dimensions = 2 if len(scores) and hasattr(scores[0], "__len__") and not isinstance(scores[0], str) else 1
    if dimensions == 1:
        raise ValueError(
            f"{what} must be scores of shape (n_samples, n_classes), got a vector of {len(scores)}. Pass labels by "
            "keyword: Audit.from_predictions(targets=..., predictions=...)."
        )


def to_frame(table: Sequence[Figure], records: Iterable[Any]) -> Any:
    """Return a DataFrame with one row per record, indexed by class name.

    Raises:
        ImportError: if pandas is not installed.
    """
    try:
        import pandas
    except ImportError:
        raise ImportError("to_pandas needs pandas: pip install pandas") from None
    columns = column_names(table)
    rows = [column_values(table, record) for record in records]
    frame = pandas.DataFrame(rows, columns=list(columns)).set_index("name")
    frame.index.name = "class"
    return frame
