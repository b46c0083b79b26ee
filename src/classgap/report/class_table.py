"""The table of all classes: columns of ready cells. A column in which nothing is known is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from classgap.audit.audit import Audit
from classgap.audit.diff import AuditDiff
from classgap.audit.results import ClassResult
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
from classgap.report.ordering import GROUP_ORDER

LETTERS = 48  # of a confused class; opening the class shows it whole
VERDICTS = ("gained", "unclear", "unchanged", "regressed", "unseen")


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        label: its header.
        cells: the text of each row.
        kind: "number", "text", "group" (coloured by its value) or "share" (a number drawn as a bar as well).
        order: words in the order they sort in, if not by number or alphabet.
    """

    label: str
    cells: tuple[str, ...]
    kind: str = "number"
    order: tuple[str, ...] = ()

    def sort_key(self, row: int) -> str | None:
        """What the cell sorts by if not its own text."""
        return str(self.order.index(self.cells[row])) if self.cells[row] in self.order else None


@dataclass(frozen=True)
class ClassTable:
    """All rows.

    Attributes:
        names: of the classes.
        indices: of the classes.
        columns: those that hold anything.
        order: positions of the rows as first shown.
        sorted_by: the column that they are in ascending order of.
    """

    names: tuple[str, ...]
    indices: tuple[int, ...]
    columns: tuple[Column, ...]
    order: tuple[int, ...]
    sorted_by: str


def audit_table(audit: Audit) -> ClassTable:
    """The classes of an audit, hardest first."""
    rows = audit.classes
    columns = [
        _column("Third", rows, lambda e: e.group or "unseen", "group", (*GROUP_ORDER[:3], "unseen")),
        _column("Accuracy, %", rows, lambda e: format_percent(e.accuracy), "share"),
        _column(
            f"{format_level(audit.confidence_level)} interval", rows, lambda e: format_percent_interval(e.interval)
        ),
        _column("Samples", rows, lambda e: format_count(e.support)),
        _column("Training", rows, lambda e: format_count(e.train_count)),
        _column("Most mistaken for", rows, _confusion, "text"),
        _column(
            "Likely cause", rows, lambda e: e.diagnosis[0].name.replace("-", " ") if e.diagnosis else MISSING, "text"
        ),
        _column("Margin", rows, lambda e: format_number(e.margin)),
        _column("Spread", rows, lambda e: format_number(e.spread)),
    ]
    return _table(rows, columns, [entry.accuracy for entry in rows], "Accuracy, %")


def diff_table(diff: AuditDiff) -> ClassTable:
    """The classes of a comparison, largest loss first."""
    rows = diff.classes
    columns = [
        _column("Verdict", rows, lambda e: e.verdict if e.status == "ok" else "unseen", "group", VERDICTS),
        _column("Third before", rows, lambda e: e.group or MISSING, "group", GROUP_ORDER[:3]),
        _column("Before, %", rows, lambda e: format_percent(e.before), "share"),
        _column("After, %", rows, lambda e: format_percent(e.after), "share"),
        _column("Change, points", rows, lambda e: format_points(e.change)),
        _column(f"{format_level(diff.confidence_level)} interval", rows, lambda e: format_points_interval(e.interval)),
        _column("Test samples", rows, lambda e: format_count(e.support)),
        _column("Fixed", rows, lambda e: format_count(e.fixed)),
        _column("Broken", rows, lambda e: format_count(e.broken)),
        _column("p, corrected", rows, lambda e: format_p_value(e.p_adjusted)),
    ]
    return _table(rows, columns, [entry.change for entry in rows], "Change, points")


def _confusion(entry: ClassResult) -> str:
    top = entry.top_confusion
    return MISSING if top is None else f"{truncate(top.name, LETTERS)} ({format_percent(top.rate)}\N{NO-BREAK SPACE}%)"


def _column(
    label: str, rows: Iterable[Any], cell: Callable[[Any], str], kind: str = "number", order: tuple[str, ...] = ()
) -> Column:
    return Column(label, tuple(cell(entry) for entry in rows), kind, order)


def _table(
    rows: Sequence[Any], columns: Iterable[Column], values: Sequence[float | None], sorted_by: str
) -> ClassTable:
    known = tuple(column for column in columns if any(cell != MISSING for cell in column.cells))
    # What is not known comes last.
    order = sorted(range(len(rows)), key=lambda i: (values[i] is None, values[i] or 0.0, i))
    names, indices = tuple(entry.name for entry in rows), tuple(entry.index for entry in rows)
    return ClassTable(names, indices, known, tuple(order), sorted_by)
