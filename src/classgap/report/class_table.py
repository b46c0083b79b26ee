"""The table of all classes, with formatted cells; columns without any known value are left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from classgap.audit.audit import Audit
from classgap.audit.class_tables import class_tables
from classgap.audit.diff import AuditDiff
from classgap.audit.diff_results import CLASS_CHANGES
from classgap.audit.figures import FIGURES, Figure
from classgap.audit.results import Cause, Confusion, Distribution, Interval
from classgap.report.display_names import cause_name
from classgap.report.formatting import (
    MISSING,
    format_count,
    format_level,
    format_number,
    format_p_value,
    format_percent,
    format_percent_interval,
    format_points,
    format_points_interval,
    truncate,
)

LETTERS = 48  # of a confused class; a class's details have the full name

FORMATS: Mapping[str, Callable[[Any], str]] = {
    "fraction": format_percent,
    "points": format_points,
    "count": format_count,
    "number": format_number,
    "p-value": format_p_value,
    "text": str,
}


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        label: header.
        cells: text of each row.
        kind: "number", "text", "group" (colored by its value) or "share" (a number that is also drawn as a bar).
    """

    label: str
    cells: tuple[str, ...]
    kind: str = "number"


@dataclass(frozen=True)
class ClassTable:
    """All rows.

    Attributes:
        names: names of the classes.
        indices: indices of the classes.
        columns: columns with at least one known value.
        order: positions of the rows in the initial order.
        sorted_by: header of the column that is initially ascending.
    """

    names: tuple[str, ...]
    indices: tuple[int, ...]
    columns: tuple[Column, ...]
    order: tuple[int, ...]
    sorted_by: str


def audit_table(audit: Audit) -> ClassTable:
    """The classes of an audit, hardest first."""
    table = _table(FIGURES, audit.classes, audit.confidence_level, "accuracy")
    more = [
        column
        for figures, records in class_tables(audit)[1:]
        for column in _table(figures, records, audit.confidence_level, "").columns
    ]
    return replace(table, columns=(*table.columns, *more))


def diff_table(diff: AuditDiff) -> ClassTable:
    """The classes of a comparison, largest loss first."""
    return _table(CLASS_CHANGES, diff.classes, diff.confidence_level, "change")


def format_cell(figure: Figure, entry: Any) -> str:
    """Format a field of a class for people."""
    value = getattr(entry, figure.name)
    if figure.unit == "group":
        return "unseen" if entry.status == "unseen" else value or MISSING
    if isinstance(value, Interval):
        return format_points_interval(value) if figure.unit == "points" else format_percent_interval(value)
    if isinstance(value, Distribution):
        return format_number(value.mean)
    if isinstance(value, tuple):
        return _format_list(value)
    return MISSING if value is None else FORMATS[figure.unit](value)


def _format_list(values: tuple[Any, ...]) -> str:
    """The first confusion or cause, or all names."""
    if not values:
        return MISSING
    first = values[0]
    if isinstance(first, Confusion):
        return f"{truncate(first.name, LETTERS)} ({format_percent(first.rate)}\N{NO-BREAK SPACE}%)"
    return cause_name(first.name) if isinstance(first, Cause) else ", ".join(values)


def _table(figures: Sequence[Figure], rows: Sequence[Any], confidence_level: float, sort_by: str) -> ClassTable:
    columns, sorted_by = [], ""
    for figure in figures:
        if not figure.header:
            continue
        header = figure.header.replace("{level}", format_level(confidence_level))
        cells = tuple(format_cell(figure, entry) for entry in rows)
        if any(cell != MISSING for cell in cells):
            columns.append(Column(header, cells, _kind(figure)))
        if figure.name == sort_by:
            sorted_by = header
    if not sort_by:
        return ClassTable((), (), tuple(columns), (), "")
    values = [getattr(entry, sort_by) for entry in rows]
    order = sorted(range(len(rows)), key=lambda i: (values[i] is None, values[i] or 0.0, i))  # unknown last
    names, indices = tuple(entry.name for entry in rows), tuple(entry.index for entry in rows)
    return ClassTable(names, indices, tuple(columns), tuple(order), sorted_by)


def _kind(figure: Figure) -> str:
    if figure.unit in ("group", "text"):
        return figure.unit
    return "share" if figure.unit == "fraction" and figure.columns is None else "number"
