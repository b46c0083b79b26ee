"""The charts of a comparison."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from classgap.audit.diff import AuditDiff
from classgap.audit.diff_results import ClassChange
from classgap.report.charts.row_chart import Axis, Row, row_chart
from classgap.report.charts.slope_chart import Slope, slope_chart
from classgap.report.diff_summary import diff_summary
from classgap.report.formatting import format_points, format_points_interval
from classgap.report.ordering import largest_changes, order_groups

MAX_LABELS = 5  # gained and regressed classes labeled in the slope chart, each
MAX_ROWS = 12  # gained and regressed classes in the chart of changes, each


def class_slopes(diff: AuditDiff, key: str) -> Markup:
    """Accuracy of each class before and after, with the thirds as thick lines."""
    seen = [entry for entry in diff.classes if entry.before is not None and entry.after is not None]
    labeled = {
        entry.name for verdict in ("gained", "regressed") for entry in largest_changes(diff, verdict, MAX_LABELS)
    }
    # Significant changes last, so that they are drawn on top.
    order = sorted(seen, key=lambda entry: entry.verdict in ("gained", "regressed"))
    thin = [
        Slope(
            e.before or 0.0,
            e.after or 0.0,
            e.verdict,
            e.name if e.name in labeled else "",
        )
        for e in order
    ]
    thick = [
        Slope(
            g.change.before,
            g.change.after,
            "other",
            f"{g.name} third",
        )
        for g in order_groups(diff.groups)
        if g.kind == "thirds"
    ]
    description = f"{diff_summary(diff)} The table below lists all values.".lstrip()
    sides = (diff.before_name, diff.after_name)
    return slope_chart(f"{key}slopes", "Accuracy of each class before and after", description, thin, thick, sides)


def group_changes(diff: AuditDiff, key: str) -> Markup:
    """Change in the mean accuracy of each group with its interval."""
    groups = order_groups(diff.groups)
    rows = [
        Row(
            f"{g.name} ({len(g.members)})",
            g.change.change,
            format_points(g.change.change),
            g.name if g.kind == "thirds" else "other",
            g.change.interval,
        )
        for g in groups
    ]
    changes = "; ".join(
        f"{g.name} {format_points(g.change.change)} ({format_points_interval(g.change.interval)})" for g in groups
    )
    title = "Change in the mean accuracy of each group"
    return row_chart(f"{key}groups", title, f"{changes} percentage points.", rows, points_axis(rows))


def class_changes(diff: AuditDiff, key: str) -> Markup | None:
    """The largest significant changes with their intervals, or ``None`` if no change is significant."""
    gained, regressed = (largest_changes(diff, verdict, MAX_ROWS) for verdict in ("gained", "regressed"))
    rows = [_class_row(entry) for entry in [*gained, *reversed(regressed)]]
    if not rows:
        return None
    description = (
        f"Largest significant gains: {_join_changes(gained)}. "
        f"Largest significant losses: {_join_changes(regressed)}. In percentage points."
    )
    title = "Classes that got significantly better or worse"
    return row_chart(f"{key}changes", title, description, rows, points_axis(rows))


def _class_row(entry: ClassChange) -> Row:
    change = entry.change or 0.0
    return Row(entry.name, change, format_points(change), entry.verdict, entry.interval, index=entry.index)


def _join_changes(entries: Iterable[ClassChange]) -> str:
    return ", ".join(f"{entry.name} {format_points(entry.change)}" for entry in entries) or "none"


def points_axis(rows: Sequence[Row]) -> Axis:
    """Return a symmetric axis of percentage points that fits the rows."""
    ends = [end for row in rows for end in (row.value, *(row.band or ()))]
    reach = 1.05 * max([0.01, *map(abs, ends)])
    return Axis((-reach, reach), "change, percentage points", signed_tick, zero=True)


def signed_tick(value: float) -> str:
    """Format a tick in signed percentage points."""
    return f"{100 * value:+g}".replace("-", "−") if value else "0"
