"""A comparison as a page of a terminal, 80 columns wide."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from classgap.audit.diff import AuditDiff
from classgap.audit.diff_results import ClassChange
from classgap.report.diff_charts import largest, ordered_groups, unclear_losses
from classgap.report.diff_page import change_row, comparison_name, seed_rows
from classgap.report.diff_summary import diff_summary
from classgap.report.formatting import chance, count, format_level, percent, points, points_range
from classgap.report.summary import diff_headline
from classgap.report.terminal import STYLES, interval_bar, name_cell, new_table, open_console, plain_text, title, words

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

CLASSES = 8
UNCLEAR = 3
NARROW = 15  # columns of an interval bar beside so many figures


def print_diff(diff: AuditDiff, file: TextIO | None = None) -> None:
    """Write a comparison's page: headline, summary, groups, gap, who gained and who paid.

    Args:
        diff: what to show.
        file: where to write; the terminal if not given.
    """
    _show(open_console(file), diff)


def diff_text(diff: AuditDiff) -> str:
    """The terminal page as plain text."""
    return plain_text(lambda console: _show(console, diff))


def _show(console: Console, diff: AuditDiff) -> None:
    title(console, f"classgap compare: {comparison_name(diff)}", diff_headline(diff))
    console.print(words(diff_summary(diff)))
    tables = [_group_table(diff), _gap_table(diff)] + ([_seed_table(diff)] if diff.over_runs else [])
    for table in tables:
        console.print("\n", table, sep="")
    for verdict, caption, names in (("gained", "Who gained", diff.gained), ("regressed", "Who paid", diff.regressed)):
        if names:
            table = _class_table(f"{caption}: {count(len(names))}", largest(diff, verdict, CLASSES))
            console.print("\n", table, sep="")
        else:
            console.print("\n", words(f"{caption}: no class for certain.", "bold"), sep="")
    losses = [] if diff.regressed else unclear_losses(diff, UNCLEAR)
    if losses:
        console.print("\n", _class_table("Largest losses, perhaps by chance", losses), sep="")


def _group_table(diff: AuditDiff) -> Table:
    groups = ordered_groups(diff)
    reach = max((abs(end) for group in groups for end in group.change.interval), default=0.01) or 0.01
    confidence_level = format_level(diff.confidence_level)
    columns = ("group, %", "before", "after", "change", f"{confidence_level} interval", "by chance", "loss | gain")
    table = new_table("Groups, as they were before", *columns, spare=("loss | gain", "by chance"))
    for group in groups:
        change = group.change
        kind = "medium" if not change.significant else "gained" if change.change > 0 else "regressed"
        table.add_row(
            name_cell(group.name, STYLES.get(group.name, "")),
            percent(change.before),
            percent(change.after),
            points(change.change),
            points_range(change.interval),
            points(change.expected_by_chance),
            interval_bar(change.change, change.interval, kind, (-reach, reach), NARROW),
        )
    return table


def _gap_table(diff: AuditDiff) -> Table:
    table = new_table(
        "Gap", "measure", "before", "after", "change", f"{format_level(diff.confidence_level)} interval", "by chance"
    )
    for name in ("easy_hard", "own_easy_hard", "worst_class", "worst_tenth", "std"):
        if name in diff.gap:
            table.add_row(*change_row(name, diff.gap[name]))
    return table


def _seed_table(diff: AuditDiff) -> Table:
    table = new_table(
        f"Over {diff.runs_per_side} seeds: mean ± standard deviation", "figure", "before", "after", "change", "p"
    )
    for row in seed_rows(diff):
        table.add_row(*map(words, row))
    return table


def _class_table(caption: str, entries: list[ClassChange]) -> Table:
    columns = ("class", "before", "after", "change", "interval", "samples", "p")
    table = new_table(f"{caption}; in %, samples fixed and broken", *columns, spare=("p",))
    for entry in entries:
        table.add_row(
            name_cell(entry.name),
            percent(entry.before),
            percent(entry.after),
            points(entry.change),
            points_range(entry.interval),
            f"+{entry.fixed:,} −{entry.broken:,}",
            chance(entry.p_adjusted),
        )
    return table
