"""Per-class metrics of an audit or of comparisons as CSV, one line per class."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from typing import Any

from classgap._atomic_write import atomic_write_text
from classgap.audit.audit import Audit
from classgap.audit.class_tables import class_columns
from classgap.audit.diff import AuditDiff
from classgap.audit.diff_results import CLASS_CHANGES
from classgap.audit.figures import column_names, column_values

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
SIDES = ("before_name", "after_name")


def write_csv(audit: Audit, path: str | os.PathLike[str]) -> None:
    """Write one line per class; accuracies are fractions, unknown values are empty.

    Args:
        audit: the audit to write.
        path: the file, which is replaced atomically.

    >>> from classgap.audit import Audit
    >>> audit = Audit.from_predictions(predictions=[0, 0, 1, 0], targets=[0, 0, 1, 1], class_names=["cat", "dog"])
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_csv(audit, Path(folder) / "classes.csv")
    ...     len((Path(folder) / "classes.csv").read_text(encoding="utf-8").splitlines())
    3
    """
    _write(*class_columns(audit), path)


def write_diff_csv(diffs: Sequence[AuditDiff], path: str | os.PathLike[str]) -> None:
    """Write one line per class and comparison; accuracies are fractions, unknown values are empty.

    Args:
        diffs: the comparisons to write.
        path: the file, which is replaced atomically.

    >>> from classgap.audit import Audit, compare
    >>> targets = [0] * 20 + [1] * 20
    >>> sides = ([0] * 30 + [1] * 10, targets)
    >>> diff = compare(*(Audit.from_predictions(predictions=side, targets=targets) for side in sides))
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_diff_csv([diff], Path(folder) / "changes.csv")
    ...     len((Path(folder) / "changes.csv").read_text(encoding="utf-8").splitlines())
    3
    """
    lines = [
        column_values(CLASS_CHANGES, entry) | {name: getattr(diff, name) for name in SIDES}
        for diff in diffs
        for entry in diff.classes
    ]
    _write((*column_names(CLASS_CHANGES), *SIDES), lines, path)


def _write(columns: Sequence[str], lines: Sequence[dict[str, Any]], path: str | os.PathLike[str]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in line.items()} for line in lines)
    atomic_write_text(path, text.getvalue())


def _cell(value: Any) -> Any:
    """Prefix text that a spreadsheet would run as a formula with an apostrophe, which it does not show."""
    if not isinstance(value, str) or not value.startswith(FORMULA_STARTS):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value
