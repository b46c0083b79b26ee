"""Terminal output of a history."""

from __future__ import annotations

import textwrap
from typing import TextIO

from rich.console import Console

from classgap.audit.history import History
from classgap.report.history_rows import HEADERS, history_headline, release_row
from classgap.report.terminal.console import name_cell, print_page, print_title, render_text
from classgap.report.terminal.table import new_table

HEADER_WIDTH = 12  # wide enough for all but one header


def print_history(history: History, file: TextIO | None = None) -> None:
    """Print one line per release.

    Args:
        history: the history to print.
        file: destination; standard output by default.

    >>> from classgap.audit import Audit, History
    >>> audit = Audit.from_predictions(predictions=[0, 0, 1, 0], targets=[0, 0, 1, 1])
    >>> history = History.from_audits([audit, audit], ["v1", "v2"])
    >>> print_history(history)  # doctest: +ELLIPSIS
    classgap history
    ...
    """
    print_page(lambda console: _show(console, history), file)


def history_text(history: History) -> str:
    """Return the terminal output as plain text.

    >>> from classgap.audit import Audit, History
    >>> audit = Audit.from_predictions(predictions=[0, 0, 1, 0], targets=[0, 0, 1, 1])
    >>> history = History.from_audits([audit, audit], ["v1", "v2"])
    >>> "v2" in history_text(history)
    True
    """
    return render_text(lambda console: _show(console, history))


def _show(console: Console, history: History) -> None:
    print_title(console, "classgap history", history_headline(history))
    headers = [textwrap.fill(header.lower(), HEADER_WIDTH) for header in HEADERS]
    table = new_table("Accuracies in %, the gap in points", *headers, text=("worst class",), optional=("samples",))
    for release in history.releases:
        cells = release_row(release)
        table.add_row(name_cell(cells[0]), *cells[1:4], name_cell(cells[4]), *cells[5:])
    console.print(table)
