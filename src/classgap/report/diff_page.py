"""What the HTML page of one or several comparisons is filled with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from classgap.audit.diff import AuditDiff
from classgap.audit.diff_results import Change, GroupChange, RunsChange
from classgap.report import diff_charts
from classgap.report.class_table import diff_table
from classgap.report.details import diff_details
from classgap.report.diff_summary import diff_summary
from classgap.report.formatting import (
    GAPS,
    MISSING,
    chance,
    count,
    format_level,
    gap_name,
    measure,
    number,
    percent,
    points,
    points_range,
)
from classgap.report.notes import diff_notes
from classgap.report.summary import diff_headline


def diff_page(diffs: Sequence[AuditDiff]) -> dict[str, Any]:
    """Variables of ``diff.html``; with several comparisons also a table of all."""
    keys = [""] if len(diffs) == 1 else [f"c{i}-" for i in range(len(diffs))]
    return {
        "views": [_view(diff, key) for diff, key in zip(diffs, keys, strict=True)],
        "data_sets": [diff_details(diff) for diff in diffs],
        "level": format_level,
        "overview": _overview(diffs),
        "notes": diff_notes(diffs[0]),
    }


def key_changes(diff: AuditDiff) -> list[tuple[str, Change, str]]:
    """The few figures that come first: label, change, colour."""
    found = [("All samples", diff.overall, ""), ("Mean over classes", diff.balanced, "")]
    found += [
        (f"{name.title()} third", diff.groups[name].change, name) for name in ("easy", "hard") if name in diff.groups
    ]
    if "worst_class" in diff.gap:
        found.append(("Worst class", diff.gap["worst_class"], ""))
    return found


def seed_rows(diff: AuditDiff) -> list[tuple[str, str, str, str, str]]:
    """One row a figure over seeds: before, after, change, p."""
    return [_seed_row(name, entry) for name, entry in diff.over_runs.items()]


def change_row(name: str, change: Change) -> tuple[str, str, str, str, str, str]:
    """A gap measure on both sides, with its change, the interval of that, and what chance alone would do."""
    label = "easy third − hard third, thirds of before" if name == "easy_hard" else gap_name(name)
    if name == "gini":
        interval = f"{number(change.interval.low)} to {number(change.interval.high)}"
        sides = (number(change.before), number(change.after), number(change.change))
        return (label, *sides, interval, number(change.expected_by_chance))
    sides = (percent(change.before), percent(change.after), points(change.change))
    return (label, *sides, points_range(change.interval), points(change.expected_by_chance))


def comparison_name(diff: AuditDiff) -> str:
    """Both sides, with the number of runs if there are several."""
    runs = "" if diff.runs_per_side == 1 else f" ({diff.runs_per_side} runs each)"
    return f"{diff.before_name} → {diff.after_name}{runs}"


def _view(diff: AuditDiff, key: str) -> dict[str, Any]:
    groups = [_group_row(group.name, group) for group in diff_charts.ordered_groups(diff)]
    own = [_group_row(f"{group.name}, each side's own", group, counted=False) for group in diff.own_groups.values()]
    return {
        "diff": diff,
        "key": key,
        "name": comparison_name(diff),
        "headline": diff_headline(diff),
        "summary": diff_summary(diff),
        "key_figures": key_changes(diff),
        "slopes": diff_charts.slopes(diff, key),
        "changes": diff_charts.class_changes(diff, key),
        "groups": diff_charts.group_changes(diff, key),
        "group_rows": groups + own,
        "gap_rows": [change_row(name, change) for name, change in diff.gap.items()],
        "seed_rows": seed_rows(diff),
        "table": diff_table(diff),
        "index_of": {entry.name: entry.index for entry in diff.classes},
    }


def _group_row(label: str, group: GroupChange, *, counted: bool = True) -> tuple[str, ...]:
    """A group on both sides; ``counted`` unless it holds other classes after, so that none of them went up or down."""
    change = group.change
    shares = (percent(change.before), percent(change.after), points(change.change), points_range(change.interval))
    counts = (count(group.gained), count(group.regressed)) if counted else (MISSING, MISSING)
    return (label, *shares, points(change.expected_by_chance), *counts)


def _seed_row(name: str, entry: RunsChange) -> tuple[str, str, str, str, str]:
    before = f"{measure(name, entry.before_mean)} ± {measure(name, entry.before_std)}"
    after = f"{measure(name, entry.after_mean)} ± {measure(name, entry.after_std)}"
    signed = number(entry.change_mean) if name == "gini" else points(entry.change_mean)
    change = f"{signed} ± {measure(name, entry.change_std)}"
    # Other tables have the measures of the mean accuracies over runs, which are other numbers.
    own = ", each run's own thirds" if name == "easy_hard" else ", each run's own" if name in GAPS else ""
    return (gap_name(name) + own, before, after, change, chance(entry.p_value))


def _overview(diffs: Sequence[AuditDiff]) -> dict[str, Any]:
    headers = ["Compared with", "Gained", "Paid", *(label for label, _, _ in key_changes(diffs[0]))]
    rows = []
    for diff in diffs:
        changes = [f"{points(c.change)} ({points_range(c.interval)})" for _, c, _ in key_changes(diff)]
        rows.append((diff.after_name, count(len(diff.gained)), count(len(diff.regressed)), *changes))
    return {"headers": headers, "rows": rows}
