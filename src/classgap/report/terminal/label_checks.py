"""Terminal output of ``--check-labels``."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console

from classgap.audit.audit import Audit
from classgap.report.advice import list_samples
from classgap.report.formatting import format_count, pluralize
from classgap.report.label_checks import label_checks
from classgap.report.terminal.console import name_cell, plain_text, print_page
from classgap.report.terminal.table import new_table


def print_label_checks(audit: Audit, file: TextIO | None = None) -> None:
    """Print the test samples whose labels are in doubt, by label and prediction.

    Args:
        audit: the audit to print.
        file: destination; standard output by default.

    Raises:
        ValueError: if the audit has no scores.

    >>> import numpy as np
    >>> from classgap.audit import Audit
    >>> targets = np.arange(30) % 3
    >>> print_label_checks(Audit.from_predictions(3.0 * np.eye(3)[targets], targets))
    Labels to check: none. No error looks like an ordinary sample of the predicted class.
    """
    checks = label_checks(audit)

    def show(console: Console) -> None:
        if not checks:
            console.print("Labels to check: none. No error looks like an ordinary sample of the predicted class.")
            return
        total = pluralize(sum(len(check.samples) for check in checks), "sample", "samples")
        table = new_table(
            f"Labels to check ({total})", "labeled", "looks like", "count", "samples", text=("looks like", "samples")
        )
        for check in checks:
            names = (name_cell(audit.class_names[index]) for index in (check.label, check.predicted))
            table.add_row(*names, format_count(len(check.samples)), plain_text(list_samples(check.samples)))
        console.print(table)

    print_page(show, file)
