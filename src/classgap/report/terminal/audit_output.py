"""Terminal output of an audit."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from classgap.audit.audit import Audit
from classgap.audit.figures import FIGURES, ClassResult, Figure
from classgap.audit.results import Interval
from classgap.report.advice import advice_parts, fix_command, remedy_advice
from classgap.report.budget import budget_line
from classgap.report.class_table import format_cell
from classgap.report.formatting import (
    MISSING,
    format_count,
    format_level,
    format_number,
    format_percent,
    format_percent_interval,
    pluralize,
)
from classgap.report.gap_rows import gap_rows
from classgap.report.label_sections import label_sections
from classgap.report.notices import notice_text
from classgap.report.ordering import failing_classes, order_groups, sort_by_accuracy
from classgap.report.sections import Section
from classgap.report.summary import cause_sentence, headline, offset_sentence
from classgap.report.terminal.console import (
    STYLES,
    interval_bar,
    name_cell,
    plain_text,
    print_page,
    print_title,
    render_text,
)
from classgap.report.terminal.table import new_table

WORST_CLASSES = 10
CONFUSED_PAIRS = 5
DIAGNOSES = 5
SECTION_CLASSES = 5
SECTION_ROWS = 16


def print_audit(audit: Audit, file: TextIO | None = None) -> None:
    """Print the headline, groups, gap, worst classes, confused pairs and diagnoses of an audit.

    Args:
        audit: the audit to print.
        file: destination; standard output by default.

    >>> from classgap.audit import Audit
    >>> audit = Audit.from_predictions(predictions=[0, 0, 1, 0], targets=[0, 0, 1, 1], class_names=["cat", "dog"])
    >>> print_audit(audit)  # doctest: +ELLIPSIS
    classgap audit: audit
    ...
    """
    print_page(lambda console: _show(console, audit), file)


def audit_text(audit: Audit) -> str:
    """Return the terminal output as plain text.

    >>> from classgap.audit import Audit
    >>> audit = Audit.from_predictions(predictions=[0, 0, 1, 0], targets=[0, 0, 1, 1], class_names=["cat", "dog"])
    >>> "dog" in audit_text(audit)
    True
    """
    return render_text(lambda console: _show(console, audit))


def _show(console: Console, audit: Audit) -> None:
    print_title(console, f"classgap audit: {audit.name}", headline(audit))
    console.print(_overall(audit))
    tables = [_group_table(audit), _gap_table(audit), _worst_table(audit)]
    for table in tables + ([_pair_table(audit)] if audit.pairs else []):
        console.print("\n", table, sep="")
    for section in label_sections(audit):
        _print_section(console, section)
    console.print()
    _print_diagnoses(console, audit)
    for notice in audit.notices:
        console.print(plain_text(f"Note: {notice_text(notice)}", "bright_black"))


def _overall(audit: Audit) -> str:
    overall = audit.overall
    top_k = "".join(f", top-{k} {format_percent(value)} %" for k, value in sorted(overall.top_k.items()) if k > 1)
    classes = pluralize(overall.seen_classes, "class", "classes")
    return (
        f"Accuracy {format_percent(overall.accuracy)} %{top_k}; balanced accuracy "
        f"{format_percent(overall.balanced_accuracy)} % ({format_level(audit.confidence_level)} CI "
        f"{format_percent_interval(overall.balanced_interval)}); macro F1 {format_percent(overall.macro_f1)} %. "
        f"{format_count(overall.n_samples)} samples, {classes}."
    )


def _group_table(audit: Audit) -> Table:
    interval = f"{format_level(audit.confidence_level)} CI"
    caption = "Groups of classes" + ("" if audit.rank_by == "own" else " (thirds by the baseline's accuracy)")
    table = new_table(
        caption, "group", "classes", "accuracy, %", interval, "0 to 100 %", "margin",
        optional=("0 to 100 %", "margin", "classes"),
    )  # fmt: skip
    for group in order_groups(audit.groups):
        bar = MISSING if group.accuracy is None else interval_bar(group.accuracy, group.interval, group.name)
        table.add_row(
            name_cell(group.name, STYLES.get(group.name, "")),
            format_count(len(group.members)),
            format_percent(group.accuracy),
            format_percent_interval(group.interval),
            bar,
            format_number(group.margin),
        )
    return table


def _gap_table(audit: Audit) -> Table:
    table = new_table("Gap", "measure", "value", f"{format_level(audit.confidence_level)} CI", "by chance")
    for row in gap_rows(audit):
        table.add_row(*row)
    return table


def _worst_table(audit: Audit) -> Table:
    shown = [figure for figure in FIGURES if figure.terminal]
    table = new_table(
        f"Worst classes (accuracy in %, {format_level(audit.confidence_level)} CI)",
        "class",
        *(figure.terminal for figure in shown),
        text=tuple(figure.terminal for figure in shown if figure.unit == "text"),
        optional=("support", "confused with"),
    )
    for entry in sort_by_accuracy(audit.classes)[:WORST_CLASSES]:
        table.add_row(name_cell(entry.name), *(_class_cell(figure, entry) for figure in shown))
    return table


def _class_cell(figure: Figure, entry: ClassResult) -> Text | str:
    value = getattr(entry, figure.name)
    if isinstance(value, Interval):
        return interval_bar(entry.accuracy or 0.0, value, entry.group or "", width=18)
    if figure.name == "confusions" and value:
        return name_cell(f"{format_percent(value[0].rate)} % {value[0].name}")  # rate first: long names are truncated
    cell = format_cell(figure, entry)
    return name_cell(cell) if figure.unit == "text" else cell


def _pair_table(audit: Audit) -> Table:
    table = new_table(
        "Most confused pairs", "class A", "class B", "A as B, %", "B as A, %", "samples",
        text=("class B",),
        optional=("samples", "B as A, %"),
    )  # fmt: skip
    for pair in audit.pairs[:CONFUSED_PAIRS]:
        both = f"{format_count(pair.first_as_second)} + {format_count(pair.second_as_first)}"
        rates = format_percent(pair.first_rate), format_percent(pair.second_rate)
        table.add_row(name_cell(pair.first), name_cell(pair.second), *rates, both)
    return table


def _print_section(console: Console, section: Section) -> None:
    """Print the findings of a section and the first rows of its tables."""
    console.print()
    console.print(plain_text(section.title, "bold"))
    for sentence in section.sentences:
        _print_indented(console, plain_text(sentence), 2)
    for found in section.tables:
        text = tuple(found.headers[i] for i in found.text_columns)
        table = new_table(found.caption, *found.headers, text=text, optional=found.optional)
        for first, *cells in found.rows[: SECTION_CLASSES if found.classes else SECTION_ROWS]:
            named = (plain_text(cell) if i in found.text_columns else cell for i, cell in enumerate(cells, 1))
            table.add_row(name_cell(first) if found.classes else plain_text(first), *named)
        console.print("\n", table, sep="")


def _print_diagnoses(console: Console, audit: Audit) -> None:
    failing = failing_classes(audit.classes)
    if failing:
        console.print(plain_text("Why classes fail", "bold"))
    for entry in failing[:DIAGNOSES]:
        line = plain_text(f"{entry.name}: ", "bold") + plain_text(cause_sentence(entry) or "")
        _print_indented(console, line, 2)
        if entry.error_budget is not None:
            _print_indented(console, plain_text(budget_line(entry.error_budget)), 4)
        _print_command(console, *advice_parts(entry.diagnosis[0], entry, audit.source))
    if len(failing) > DIAGNOSES:
        more = pluralize(len(failing) - DIAGNOSES, "more class", "more classes")
        console.print(plain_text(f"  … and {more}; --html shows all."))
    if audit.error_budget is not None:
        _print_indented(console, plain_text(f"All classes, {budget_line(audit.error_budget)}"), 2 if failing else 0)
    offsets = offset_sentence(audit)
    if offsets:
        _print_indented(console, plain_text(offsets), 2 if failing else 0)
        if fix_command(audit.source):
            _print_command(console, *remedy_advice(audit.source))
    if failing or audit.error_budget is not None:
        console.print()


def _print_command(console: Console, sentence: str, command: str, indent: int = 4) -> None:
    """Print a sentence and its command, which is on a line of its own if both do not fit on one line."""
    text = plain_text(f"{sentence}: {command}" if command else f"{sentence}.", "bright_black")
    if command and text.cell_len > console.width - indent:
        _print_indented(console, plain_text(f"{sentence}:", "bright_black"), indent)
        text = plain_text(command, "bright_black")
    if command and text.cell_len > console.width - indent:
        console.print(text, soft_wrap=True)  # unbroken, so that it can be pasted
        return
    _print_indented(console, text, indent)


def _print_indented(console: Console, line: Text, columns: int) -> None:
    console.print(Padding(line, (0, 0, 0, columns)))
