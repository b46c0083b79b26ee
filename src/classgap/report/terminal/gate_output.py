"""Terminal output of a gate."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from classgap.audit.gate_results import GateResult, RuleResult
from classgap.report.formatting import format_count
from classgap.report.gate_text import (
    GROUP_HEADERS,
    gate_headline,
    group_row,
    level_sentence,
    power_sentence,
    power_warnings,
    rule_sentence,
    rule_title,
    violation_headers,
    violation_row,
)
from classgap.report.match_text import match_sentences
from classgap.report.terminal.console import STYLES, name_cell, plain_text, print_page, print_title, render_text
from classgap.report.terminal.table import new_table

MAX_CLASSES = 10


def print_gate(result: GateResult, file: TextIO | None = None) -> None:
    """Print the verdict, rules, groups and classes that break a rule.

    Args:
        result: the gate to print.
        file: destination; standard output by default.

    >>> from classgap.audit import Audit, gate
    >>> targets = [0] * 40 + [1] * 40
    >>> audit = Audit.from_predictions(predictions=targets, targets=targets)
    >>> result = gate(audit, audit, max_class_drop=3)
    >>> print_gate(result)  # doctest: +ELLIPSIS
    classgap gate: ...
    """
    print_page(lambda console: _show(console, result), file)


def gate_text(result: GateResult) -> str:
    """Return the terminal output as plain text.

    >>> from classgap.audit import Audit, gate
    >>> targets = [0] * 40 + [1] * 40
    >>> audit = Audit.from_predictions(predictions=targets, targets=targets)
    >>> result = gate(audit, audit, max_class_drop=3)
    >>> "pass" in gate_text(result)
    True
    """
    return render_text(lambda console: _show(console, result))


def _show(console: Console, result: GateResult) -> None:
    verdict = " ".join([gate_headline(result), *power_warnings(result)])
    print_title(console, f"classgap gate: {result.before_name} → {result.after_name}", verdict)
    for rule in result.rules:
        mark, style = ("pass", "blue") if rule.passed else ("FAIL", "dark_orange3")
        console.print(plain_text(f"{mark}  {rule_title(rule)}", style))
        console.print(Padding(plain_text(rule_sentence(rule)), (0, 0, 0, 6)))
    console.print("\n", _group_table(result), sep="")
    for rule in result.broken:
        if rule.violations:
            console.print("\n", _class_table(rule), sep="")
    console.print()
    for sentence in (*match_sentences(result), power_sentence(result), level_sentence(result)):
        console.print(plain_text(sentence))


def _group_table(result: GateResult) -> Table:
    caption = "Groups of the baseline (accuracies in %, changes in points)"
    table = new_table(caption, *GROUP_HEADERS, optional=("by chance", "detectable"))
    for group in result.groups.values():
        name, *cells = group_row(group)
        table.add_row(name_cell(name, STYLES.get(name, "")), *cells)
    return table


def _class_table(rule: RuleResult) -> Table:
    more = len(rule.violations) - MAX_CLASSES
    caption = rule_title(rule) + (
        f": the first {MAX_CLASSES} of {format_count(len(rule.violations))}" if more > 0 else ""
    )
    table = new_table(caption, *violation_headers(rule))
    for violation in rule.violations[:MAX_CLASSES]:
        name, *cells = violation_row(rule, violation)
        table.add_row(name_cell(name), *cells)
    return table
