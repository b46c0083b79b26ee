"""All per-class tables of an audit: its metrics, those as valid and those of superclasses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from classgap.audit.figures import FIGURES, Figure, column_names, column_values
from classgap.audit.superclass_results import SUPERCLASS_FIGURES
from classgap.audit.valid_results import VALID_FIGURES

if TYPE_CHECKING:
    from classgap.audit.audit import Audit

ClassTables = list[tuple[Sequence[Figure], Sequence[Any]]]


def class_tables(audit: Audit) -> ClassTables:
    """Return each table of metrics with its records, one record per class."""
    tables: ClassTables = [(FIGURES, audit.classes)]
    if audit.valid is not None:
        tables.append((VALID_FIGURES, audit.valid.classes))
    if audit.superclasses is not None:
        tables.append((SUPERCLASS_FIGURES, audit.superclasses.classes))
    return tables


def class_columns(audit: Audit) -> tuple[tuple[str, ...], list[dict[str, Any]]]:
    """Return the names of the CSV and pandas columns, and one row per class."""
    tables = class_tables(audit)
    columns = tuple(name for table, _ in tables for name in column_names(table))
    rows: list[dict[str, Any]] = [{} for _ in audit.classes]
    for table, records in tables:
        for row, record in zip(rows, records, strict=True):
            row |= column_values(table, record)
    return columns, rows
