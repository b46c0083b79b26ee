"""Table rows of gap measures and of statistics over runs, shared by the HTML page and the terminal output."""

from __future__ import annotations

from classgap.audit.audit import Audit
from classgap.audit.diff import AuditDiff
from classgap.audit.diff_results import Change, RunsChange
from classgap.audit.results import Interval
from classgap.report.display_names import GAPS, gap_name
from classgap.report.formatting import (
    MISSING,
    format_gap,
    format_number,
    format_p_value,
    format_percent,
    format_points,
    format_points_interval,
)


def gap_rows(audit: Audit) -> list[tuple[str, str, str, str]]:
    """Return one row per gap measure: name, value, interval, value expected by chance."""
    rows = []
    for name in GAPS:
        value = getattr(audit.gap, name, None)
        if value is not None:
            unit = "" if name == "gini" else " %" if name.startswith("worst") else " points"
            interval = _format_interval(name, audit.gap.intervals.get(name))
            expected = format_gap(name, audit.gap.expected_by_chance.get(name))
            rows.append((gap_name(name, audit.rank_by), format_gap(name, value) + unit, interval, expected))
    return rows


def gap_change_row(name: str, change: Change) -> tuple[str, str, str, str, str, str]:
    """Return a row for one gap measure: name, before, after, change, interval, change expected by chance."""
    label = "easy third − hard third, thirds of the first model" if name == "easy_hard" else gap_name(name)
    if name == "gini":
        sides = (format_number(change.before), format_number(change.after), format_number(change.change))
        return (label, *sides, _format_interval(name, change.interval), format_number(change.expected_by_chance))
    sides = (format_percent(change.before), format_percent(change.after), format_points(change.change))
    return (label, *sides, format_points_interval(change.interval), format_points(change.expected_by_chance))


def run_rows(diff: AuditDiff) -> list[tuple[str, str, str, str, str]]:
    """Return one row per metric over runs: name, before, after, change, p-value."""
    return [_run_row(name, entry) for name, entry in diff.over_runs.items()]


def _run_row(name: str, entry: RunsChange) -> tuple[str, str, str, str, str]:
    before = f"{format_gap(name, entry.before_mean)} ± {format_gap(name, entry.before_std)}"
    after = f"{format_gap(name, entry.after_mean)} ± {format_gap(name, entry.after_std)}"
    signed = format_number(entry.change_mean) if name == "gini" else format_points(entry.change_mean)
    change = f"{signed} ± {format_gap(name, entry.change_std)}"
    # The other tables show these measures for accuracies averaged over runs, which gives other values.
    label = f"{gap_name(name)}, per run" if name in GAPS else gap_name(name)
    return (label, before, after, change, format_p_value(entry.p_value))


def _format_interval(name: str, interval: Interval | None) -> str:
    return MISSING if interval is None else f"{format_gap(name, interval.low)} to {format_gap(name, interval.high)}"
