"""Encode the numeric, categorical and text columns of a table as vectors, with settings that JSON can store."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from classgap.data.transforms.text import TextColumn

Table = Mapping[str, Sequence[Any]]

# Of a numeric column, as spreadsheets and pandas write them. A category may have any of these names but the first.
MISSING = frozenset(("", "na", "n/a", "nan", "null", "none", "?"))
MAX_CATEGORIES = 256
MAX_NUMBER = 1e100  # variances must not overflow


@dataclass(frozen=True)
class NumericColumn:
    """A column of numbers: missing ones become the median, and all are standardized.

    Attributes:
        name: Name of the column.
        fill: Median of the training samples.
        mean: Their mean, with missing numbers filled.
        scale: Their standard deviation; 1 for a constant.
    """

    name: str
    fill: float
    mean: float
    scale: float

    @property
    def width(self) -> int:
        """Number of features."""
        return 1

    def encode(self, cells: Sequence[Any]) -> NDArray[np.float64]:
        """Return one feature, (N, 1)."""
        values_N = to_numbers(self.name, cells)
        return ((np.where(np.isnan(values_N), self.fill, values_N) - self.mean) / self.scale)[:, None]


@dataclass(frozen=True)
class CategoricalColumn:
    """A column of categories, one-hot encoded; a category that training did not see has no feature.

    Attributes:
        name: Name of the column.
        categories: Categories of the training samples, sorted; "" is a missing one.
    """

    name: str
    categories: tuple[str, ...]

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.categories)

    def encode(self, cells: Sequence[Any]) -> NDArray[np.float64]:
        """Return one feature per category, (N, C)."""
        texts = np.array([to_text(cell) for cell in cells], dtype=object)
        return (texts[:, None] == np.array(self.categories, dtype=object)).astype(np.float64)


@dataclass(frozen=True)
class TableEncoder:
    """Encode rows of a table as vectors.

    Attributes:
        columns: The columns that are used, in order. Other columns of a table are ignored.
        target: Name of the column of classes.

    >>> encoder = TableEncoder.fit({"age": ["1", "3"], "city": ["Rome", "Oslo"]}, target="class")
    >>> encoder.encode({"city": ["Oslo", "Bern"], "age": ["3", ""]})
    array([[1., 1., 0.],
           [0., 0., 0.]], dtype=float32)
    """

    columns: tuple[NumericColumn | CategoricalColumn | TextColumn, ...]
    target: str

    @classmethod
    def fit(
        cls, table: Table, *, target: str, categorical: Collection[str] = (), texts: Sequence[TextColumn] = ()
    ) -> TableEncoder:
        """Fit scikit-learn's imputer, scaler and one-hot encoder to the training rows, and keep their settings.

        Args:
            table: Columns of the training samples, without the target.
            target: Name of the column of classes.
            categorical: Columns whose numbers are categories.
            texts: Columns of texts, with their encoders.

        Raises:
            ValueError: If a column cannot be used.
        """
        by_name = {column.name: column for column in texts}

        def fit(name: str, cells: Sequence[Any]) -> NumericColumn | CategoricalColumn | TextColumn:
            if name in by_name:
                return by_name[name]
            numeric = name not in categorical and is_numeric(cells)
            return _fit_numbers(name, cells) if numeric else _fit_categories(name, cells)

        fitted = tuple(fit(name, cells) for name, cells in table.items())
        if not fitted:
            raise ValueError("the table has no column besides the target.")
        return cls(fitted, target)

    @property
    def width(self) -> int:
        """Number of features."""
        return sum(column.width for column in self.columns)

    @property
    def text_column(self) -> str | None:
        """Name of the column of texts, if there is no other column."""
        return self.columns[0].name if len(self.columns) == 1 and hasattr(self.columns[0], "encoder") else None

    def encode(self, table: Table) -> NDArray[np.float32]:
        """Return the features of rows, (N, D).

        Raises:
            ValueError: If a column is missing, or has text or huge numbers instead of numbers.
        """
        missing = [column.name for column in self.columns if column.name not in table]
        if missing:
            raise ValueError(f"the table has no column {missing[0]!r}; it has {', '.join(list(table)[:9])}.")
        parts = [column.encode(table[column.name]) for column in self.columns]
        with np.errstate(over="ignore"):  # infinities are reported
            values = np.concatenate(parts, axis=1).astype(np.float32)
        if not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0])
            raise ValueError(f"row {row + 1} has a number too large for single precision.")
        return values

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> TableEncoder:
        """Create from the plain values of ``dataclasses.asdict``."""
        return cls(tuple(map(_column_from_dict, facts["columns"])), facts["target"])


def to_text(cell: Any) -> str:
    """Return a cell as a category; "" if it is missing.

    >>> to_text(" Rome "), to_text(None), to_text(float("nan")), to_text(3)
    ('Rome', '', '', '3')
    """
    return "" if cell is None or (isinstance(cell, float) and math.isnan(cell)) else str(cell).strip()


def is_numeric(cells: Sequence[Any]) -> bool:
    """Return whether a column has numbers only, besides missing cells, and at least one.

    >>> is_numeric(["1", "", "2.5"]), is_numeric(["1", "x"]), is_numeric(["", "NA"]), is_numeric([True, False])
    (True, False, False, False)
    """
    found = [_to_number(cell) for cell in cells]
    return None not in found and any(value is not None and not math.isnan(value) for value in found)


def to_numbers(name: str, cells: Sequence[Any]) -> NDArray[np.float64]:
    """Return a column as numbers, NaN where they are missing.

    Raises:
        ValueError: If a cell is text or infinite.
    """
    found = [_to_number(cell) for cell in cells]
    bad = next((row for row, value in enumerate(found) if value is None or math.isinf(value)), None)
    if bad is not None:
        raise ValueError(f"row {bad + 1}: column {name!r} must be a finite number, got {to_text(cells[bad])[:40]!r}.")
    return np.array(found, dtype=np.float64)


def _to_number(cell: Any) -> float | None:
    """Return a cell as a number, NaN if it is missing, and ``None`` if it is something else."""
    if isinstance(cell, bool):
        return None
    text = to_text(cell)
    if text.lower() in MISSING:
        return math.nan
    try:
        return float(text)
    except ValueError:
        return None


def _fit_numbers(name: str, cells: Sequence[Any]) -> NumericColumn:
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import StandardScaler

    values = to_numbers(name, cells)
    largest = float(np.nanmax(np.abs(values)))
    if largest > MAX_NUMBER:
        raise ValueError(f"column {name!r} must have numbers up to {MAX_NUMBER:g} to be squared, got {largest:g}.")
    imputer, scaler = SimpleImputer(strategy="median"), StandardScaler()
    scaler.fit(imputer.fit_transform(values[:, None]))
    return NumericColumn(name, float(imputer.statistics_[0]), float(scaler.mean_[0]), float(scaler.scale_[0]))


def _fit_categories(name: str, cells: Sequence[Any]) -> CategoricalColumn:
    from sklearn.preprocessing import OneHotEncoder

    texts = np.array([to_text(cell) for cell in cells], dtype=object)
    distinct = len(set(texts.tolist()))
    if distinct > MAX_CATEGORIES:
        raise ValueError(
            f"column {name!r} has {distinct:,} distinct texts, but at most {MAX_CATEGORIES} categories are supported: "
            f"ignore it with :drop={name}, or encode it as text with :text={name}."
        )
    if not any(texts):
        raise ValueError(f"column {name!r} is empty: ignore it with :drop={name}.")
    encoder = OneHotEncoder(handle_unknown="ignore").fit(texts[:, None])
    return CategoricalColumn(name, tuple(map(str, encoder.categories_[0])))


def _column_from_dict(facts: Mapping[str, Any]) -> NumericColumn | CategoricalColumn | TextColumn:
    from classgap.data.transforms.text import TextColumn

    if "encoder" in facts:
        return TextColumn(**facts)
    if "categories" in facts:
        return CategoricalColumn(facts["name"], tuple(facts["categories"]))
    return NumericColumn(**facts)
