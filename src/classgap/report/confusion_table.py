"""The confusion matrix of a few classes as a table: numbers first, shading second."""

from __future__ import annotations

from dataclasses import dataclass

from classgap.audit.audit import Audit
from classgap.report.formatting import MISSING

MAX_CLASSES = 20  # more columns do not fit a window


@dataclass(frozen=True)
class ConfusionRow:
    """One true class.

    Attributes:
        index: index of the class.
        name: its name.
        cells: for each predicted class, the percentage as text, the fraction, and the number of samples.
    """

    index: int
    name: str
    cells: tuple[tuple[str, float, int], ...]


def confusion_table(audit: Audit) -> list[ConfusionRow] | None:
    """Return the rows of the confusion matrix, or ``None`` with one class or more than ``MAX_CLASSES``."""
    if not 2 <= len(audit.classes) <= MAX_CLASSES:
        return None
    matrix = audit.confusion_matrix(sparse=False)
    return [
        ConfusionRow(entry.index, entry.name, tuple(_cell(int(count), entry.support) for count in matrix[entry.index]))
        for entry in audit.classes
    ]


def _cell(count: int, support: int) -> tuple[str, float, int]:
    """Format one count.

    >>> _cell(0, 300)[0], _cell(1, 300)[0], _cell(299, 300)[0], _cell(300, 300)[0], _cell(0, 0)[0]
    ('0', '<1', '>99', '100', '–')
    """
    if not support:
        return MISSING, 0.0, 0
    percent = 100 * count / support
    if 0 < percent < 0.5:
        return "<1", count / support, count
    if 99.5 <= percent < 100:
        return ">99", count / support, count
    return f"{percent:.0f}", count / support, count
