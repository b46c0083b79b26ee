"""Terminal output of a comparison."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console
from rich.table import Table

from classgap.audit.diff import AuditDiff
from classgap.audit.diff_results import ClassChange
from classgap.report.diff_summary import diff_summary
from classgap.report.formatting import (
    format_level,
    format_p_value,
    format_percent,
    format_points,
    format_points_interval,
    pluralize,
)
from classgap.report.gap_rows import gap_change_row, run_rows
from classgap.report.match_text import changed_sentence, correction_sentence, match_sentences, sign_rows
from classgap.report.ordering import insignificant_changes, largest_changes, order_groups
from classgap.report.summary import comparison_name, diff_headline
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

MAX_CLASSES = 8
MAX_UNCLEAR = 3
BAR_WIDTH = 15
GAPS = ("easy_hard", "own_easy_hard", "worst_class", "worst_tenth", "std")


def print_diff(diff: AuditDiff, file: TextIO | None = None) -> None:
    """Print the headline, summary, groups, gap, and gained and regressed classes of a comparison.

    Args:
        diff: the comparison to print.
        file: destination; standard output by default.

    >>> from classgap.audit import Audit, compare
    >>> targets = [0] * 20 + [1] * 20
    >>> sides = ([0] * 30 + [1] * 10, targets)
    >>> diff = compare(*(Audit.from_predictions(predictions=side, targets=targets) for side in sides))
    >>> print_diff(diff)  # doctest: +ELLIPSIS
    classgap compare: ...
    """
    print_page(lambda console: _show(console, diff), file)


def diff_text(diff: AuditDiff) -> str:
    """Return the terminal output as plain text.

    >>> from classgap.audit import Audit, compare
    >>> targets = [0] * 20 + [1] * 20
    >>> sides = ([0] * 30 + [1] * 10, targets)
    >>> diff = compare(*(Audit.from_predictions(predictions=side, targets=targets) for side in sides))
    >>> "Accuracy rose from 75.0 % to 100.0 %." in diff_text(diff)
    True
    """
    return render_text(lambda console: _show(console, diff))


def _show(console: Console, diff: AuditDiff) -> None:
    print_title(console, f"classgap compare: {comparison_name(diff)}", diff_headline(diff))
    if summary := diff_summary(diff):
        console.print(plain_text(summary))
    for sentence in [*match_sentences(diff), changed_sentence(diff)]:
        if sentence:
            console.print(plain_text(sentence))
    tables = [_group_table(diff), _gap_table(diff), _sign_table(diff)] + ([_run_table(diff)] if diff.over_runs else [])
    for table in tables:
        console.print("\n", table, sep="")
    for verdict, names in (("gained", diff.gained), ("regressed", diff.regressed)):
        if names:
            caption = f"{verdict.capitalize()}: {pluralize(len(names), 'class', 'classes')}"
            console.print("\n", _class_table(diff, caption, largest_changes(diff, verdict, MAX_CLASSES)), sep="")
    console.print("\n", plain_text(correction_sentence(diff), "bright_black"), sep="")
    for what, significant in (("gains", diff.gained), ("losses", diff.regressed)):
        found = [] if significant else insignificant_changes(diff, what == "gains", MAX_UNCLEAR)
        if found:
            console.print("\n", _class_table(diff, f"Largest {what}, not significant", found), sep="")


def _group_table(diff: AuditDiff) -> Table:
    groups = order_groups(diff.groups)
    reach = max((abs(end) for group in groups for end in group.change.interval), default=0.01) or 0.01
    interval = f"{format_level(diff.confidence_level)} CI"
    columns = ("group", "before", "after", "change", interval, "by chance", "loss | gain")
    table = new_table("Groups of the first model (in %)", *columns, optional=("loss | gain", "by chance"))
    for group in groups:
        change = group.change
        kind = "medium" if not change.significant else "gained" if change.change > 0 else "regressed"
        table.add_row(
            name_cell(group.name, STYLES.get(group.name, "")),
            format_percent(change.before),
            format_percent(change.after),
            format_points(change.change),
            format_points_interval(change.interval),
            format_points(change.expected_by_chance),
            interval_bar(change.change, change.interval, kind, (-reach, reach), BAR_WIDTH),
        )
    return table


def _sign_table(diff: AuditDiff) -> Table:
    table = new_table("Classes up and down in each group", "group", "classes", "up", "down", "p (sign test)")
    for name, *cells in sign_rows(diff):
        table.add_row(name_cell(name, STYLES.get(name, "")), *cells)
    return table


def _gap_table(diff: AuditDiff) -> Table:
    interval = f"{format_level(diff.confidence_level)} CI"
    table = new_table("Gap", "measure", "before", "after", "change", interval, "by chance")
    for name in GAPS:
        if name in diff.gap:
            table.add_row(*gap_change_row(name, diff.gap[name]))
    return table


def _run_table(diff: AuditDiff) -> Table:
    caption = f"Mean ± standard deviation over {diff.n_runs} runs per side"
    table = new_table(caption, "metric", "before", "after", "change", "p")
    for row in run_rows(diff):
        table.add_row(*map(plain_text, row))
    return table


def _class_table(diff: AuditDiff, caption: str, entries: list[ClassChange]) -> Table:
    columns = ("class", "before", "after", "change", f"{format_level(diff.confidence_level)} CI", "samples", "p")
    what = "samples fixed and broken" if diff.paired else "samples before and after"
    table = new_table(f"{caption} (%; {what})", *columns, optional=("p",))
    for entry in entries:
        table.add_row(
            name_cell(entry.name),
            format_percent(entry.before),
            format_percent(entry.after),
            format_points(entry.change),
            format_points_interval(entry.interval),
            _samples_cell(entry),
            format_p_value(entry.p_adjusted),
        )
    return table


def _samples_cell(entry: ClassChange) -> str:
    if entry.fixed is None or entry.broken is None:
        return f"{entry.support:,} {entry.support_after or 0:,}"
    return f"+{entry.fixed:,} −{entry.broken:,}"
