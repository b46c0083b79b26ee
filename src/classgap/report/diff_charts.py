"""The charts of a comparison: which records go on which axis."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup

from classgap.audit.diff import AuditDiff
from classgap.audit.diff_results import ClassChange, GroupChange
from classgap.report.diff_summary import diff_summary
from classgap.report.formatting import GROUP_ORDER, percent, points, points_range
from classgap.report.row_chart import Axis, Row, row_chart
from classgap.report.slope_chart import Slope, slope_chart

NAMED = 5  # classes on each end that carry their name in the slope chart
ROWS = 12  # classes on each end in the chart of changes


def slopes(diff: AuditDiff, key: str) -> Markup:
    """Every class's accuracy before and after; the thirds as thick lines."""
    seen = [entry for entry in diff.classes if entry.before is not None and entry.after is not None]
    named = {e.name for e in [*largest(diff, "gained", NAMED), *largest(diff, "regressed", NAMED)]}
    # Unclear ones first, so that the lines that mean something are on top.
    order = sorted(seen, key=lambda entry: entry.verdict in ("gained", "regressed"))
    thin = [
        Slope(
            e.before or 0.0,
            e.after or 0.0,
            e.verdict,
            f"{e.name} {percent(e.before)}" if e.name in named else "",
            f"{percent(e.after)} {e.name}" if e.name in named else "",
        )
        for e in order
    ]
    thick = [
        Slope(
            g.change.before,
            g.change.after,
            "other",
            f"{g.name} third {percent(g.change.before)}",
            f"{percent(g.change.after)} {g.name} third",
        )
        for g in ordered_groups(diff)
        if g.kind == "thirds"
    ]
    description = f"{diff_summary(diff)} The table of classes below holds every value."
    sides = (diff.before_name, diff.after_name)
    return slope_chart(f"{key}slopes", "Accuracy of each class before and after", description, thin, thick, sides)


def group_changes(diff: AuditDiff, key: str) -> Markup:
    """Change of each group's mean accuracy with its interval."""
    groups = ordered_groups(diff)
    rows = [
        Row(f"{g.name} ({len(g.members)})", g.change.change, points(g.change.change), kind_of(g), g.change.interval)
        for g in groups
    ]
    changes = "; ".join(f"{g.name} {points(g.change.change)} ({points_range(g.change.interval)})" for g in groups)
    title = "Change of each group's mean accuracy"
    return row_chart(f"{key}groups", title, f"{changes}, in percentage points.", rows, _points_axis(rows))


def class_changes(diff: AuditDiff, key: str) -> Markup | None:
    """The largest certain gains and losses with their intervals; nothing if none is certain."""
    gained, regressed = largest(diff, "gained", ROWS), largest(diff, "regressed", ROWS)
    rows = [_class_row(entry) for entry in [*gained, *reversed(regressed)]]
    if not rows:
        return None
    description = (
        f"Largest certain gains: {_listed(gained)}. Largest certain losses: {_listed(regressed)}. In percentage points."
    )
    title = "Classes that gained and classes that paid"
    return row_chart(f"{key}changes", title, description, rows, _points_axis(rows))


def largest(diff: AuditDiff, verdict: str, limit: int) -> list[ClassChange]:
    """The first classes of ``diff.gained`` or ``diff.paid``, which are in order of their change."""
    by_name = {entry.name: entry for entry in diff.classes}
    return [by_name[name] for name in (diff.gained if verdict == "gained" else diff.regressed)[:limit]]


def unclear_losses(diff: AuditDiff, limit: int) -> list[ClassChange]:
    """The classes that lost most of those that may have lost by chance."""
    lost = [entry for entry in diff.classes if entry.verdict == "unclear" and (entry.change or 0.0) < 0]
    return sorted(lost, key=lambda entry: (entry.change or 0.0, entry.index))[:limit]


def ordered_groups(diff: AuditDiff) -> list[GroupChange]:
    """Thirds, head to tail, then given groups."""
    known = [diff.groups[name] for name in GROUP_ORDER if name in diff.groups]
    return known + [group for name, group in diff.groups.items() if name not in GROUP_ORDER]


def kind_of(group: GroupChange) -> str:
    """How the style sheet colours a group."""
    return group.name if group.kind == "thirds" else "other"


def _class_row(entry: ClassChange) -> Row:
    change = entry.change or 0.0
    return Row(entry.name, change, points(change), entry.verdict, entry.interval, index=entry.index)


def _listed(entries: Iterable[ClassChange]) -> str:
    return ", ".join(f"{entry.name} {points(entry.change)}" for entry in entries) or "none"


def _points_axis(rows: list[Row]) -> Axis:
    ends = [end for row in rows for end in (row.value, *(row.band or ()))]
    reach = 1.05 * max([0.01, *map(abs, ends)])
    return Axis((-reach, reach), "change, percentage points", _signed_tick, zero=True)


def _signed_tick(value: float) -> str:
    return f"{100 * value:+g}".replace("-", "−") if value else "0"
