"""The charts of an audit: which records go on which axis."""

from __future__ import annotations

import math
from collections.abc import Iterable

from markupsafe import Markup

from classgap.audit.audit import Audit
from classgap.audit.figures import ClassResult
from classgap.audit.results import QUANTILE_LEVELS, GroupResult
from classgap.report.dot_chart import Axes, Dot, dot_chart, map_chart
from classgap.report.formatting import GROUP_ORDER, count, hardest_first, number, percent, percent_range
from classgap.report.row_chart import Axis, Row, row_chart

ROWS = 40  # classes that get a row of their own each; more become dots
BOXES = 12
NAMED = 16  # dots that still have room for a name each
COLOURS = 8  # of the map; class names over the points tell more classes apart


def class_chart(audit: Audit) -> Markup:
    """Every class's accuracy with its interval, hardest first, coloured by third."""
    # Thirds break ties by the class's number; taken in the same order, their colours do not mix.
    thirds = {name: place for place, name in enumerate(reversed(GROUP_ORDER[:3]))}
    order = sorted(hardest_first(audit.classes), key=lambda e: (e.accuracy or 0.0, thirds.get(e.group or "", 0)))
    title = "Accuracy of each class, hardest first"
    description = (
        f"From {order[0].name} with {percent(order[0].accuracy)} % to {order[-1].name} with "
        f"{percent(order[-1].accuracy)} %. The table of classes below holds every value."
    )
    if len(order) <= ROWS:
        rows = [
            Row(e.name, e.accuracy or 0.0, percent(e.accuracy), e.group or "", e.interval, index=e.index) for e in order
        ]
        return row_chart("classes", title, description, rows, _accuracy_axis(order))
    points = [Dot(i, e.accuracy or 0.0, e.group or "", e.index, e.interval) for i, e in enumerate(order)]
    axes = Axes(
        (0, len(order) - 1), _accuracy_domain(order), "classes, hardest first", "accuracy, %", None, _percent_tick
    )
    return dot_chart("classes", title, description, points, axes, 440)


def group_chart(audit: Audit) -> Markup:
    """Mean accuracy of each group with its interval, and its worst and best class as a thin line."""
    groups = [group for group in ordered_groups(audit) if group.accuracy is not None]
    rows = [
        Row(
            f"{group.name} ({count(len(group.members))})",
            group.accuracy or 0.0,
            percent(group.accuracy),
            group.name if group.kind == "thirds" else "other",
            group.interval,
            None if group.min is None or group.max is None else (group.min, group.max),
        )
        for group in groups
    ]
    means = "; ".join(f"{group.name} {percent(group.accuracy)} % ({percent_range(group.interval)})" for group in groups)
    return row_chart(
        "groups", "Mean accuracy of each group of classes", f"{means}.", rows, _accuracy_axis(audit.classes)
    )


def margin_chart(audit: Audit) -> Markup | None:
    """Mean output-level margin of each group; nothing without scores."""
    groups = [group for group in ordered_groups(audit) if group.margin is not None]
    if not groups:
        return None
    rows = [
        Row(
            group.name, group.margin or 0.0, number(group.margin), group.name if group.kind == "thirds" else "other",
            bar_from=0.0,
        )
        for group in groups
    ]  # fmt: skip
    if audit.overall.margin is not None:
        rows.append(Row("all samples", audit.overall.margin, number(audit.overall.margin), "other", bar_from=0.0))
    low = min(0.0, *(row.value for row in rows))
    axis = Axis((max(-1.0, low * 1.1), 1.0), "mean of P(true class) − largest other P", _plain_tick, zero=low < 0)
    means = "; ".join(f"{row.label} {row.text}" for row in rows)
    return row_chart("margins", "Mean output margin of each group", f"{means}.", rows, axis)


def box_chart(audit: Audit) -> Markup | None:
    """How the logit margins of the hardest classes are distributed; nothing without scores."""
    order = [entry for entry in hardest_first(audit.classes) if entry.logit_margin is not None]
    if not order:
        return None
    shown = order if len(order) <= BOXES else order[: BOXES - 2] + order[-2:]
    rows = [_box(entry) for entry in shown]
    ends = [end for row in rows for end in row.whisker or ()]
    axis = Axis(
        (min(0.0, *ends), max(0.0, *ends)), "logit of the true class − largest other logit", _plain_tick, zero=True
    )
    which = "Each class" if len(shown) == len(order) else f"The {BOXES - 2} hardest classes and the 2 easiest"
    description = f"{which}; dot: median; thick: middle half; thin: middle 90 % of the samples; below 0 is wrong."
    return row_chart("boxes", "Distribution of logit margins", description, rows, axis)


def spread_chart(audit: Audit) -> Markup | None:
    """Feature spread against accuracy, a dot a class; nothing without features."""
    entries = [entry for entry in audit.classes if entry.spread is not None and entry.accuracy is not None]
    if len(entries) < 2:
        return None
    found = audit.features.spread_accuracy if audit.features is not None else None
    spreads = [entry.spread or 0.0 for entry in entries]
    named = len(entries) <= NAMED
    points = [
        Dot(e.spread or 0.0, e.accuracy or 0.0, e.group or "", e.index, name=e.name if named else "") for e in entries
    ]
    room = 0.04 * (max(spreads) - min(spreads))
    x_domain, y_domain = (min(spreads) - room, max(spreads) + room), _accuracy_domain(entries)
    axes = Axes(x_domain, y_domain, "feature spread ‖ŝ‖", "accuracy, %", _plain_tick, _percent_tick)
    rho = "" if found is None else f"Rank correlation {number(found.rho)} over {count(found.classes)} classes. "
    description = f"{rho}Spread runs from {number(min(spreads))} to {number(max(spreads))}."
    return dot_chart("spread", "Feature spread against accuracy of each class", description, points, axes, 460)


def feature_map_chart(audit: Audit) -> Markup | None:
    """The 2-D map of some classes' features, if there is one."""
    found = audit.map
    if found is None:
        return None
    indices = {name: i for i, name in enumerate(audit.class_names)}
    kinds = {indices[name]: f"tone{i % COLOURS} place{i}" for i, name in enumerate(found.classes)}
    dots = [
        (Dot(x, y, kinds[target], target), target == prediction)
        for x, y, target, prediction in zip(found.x, found.y, found.target, found.prediction, strict=True)
        if target in kinds
    ]
    names = {kinds[indices[name]]: name for name in found.classes}
    right, wrong = [dot for dot, ok in dots if ok], [dot for dot, ok in dots if not ok]
    description = f"Samples of {', '.join(found.classes)}; near points have similar features; crosses are mistakes."
    return map_chart("map", "Map of the features of some classes", description, right, names, wrong)


def ordered_groups(audit: Audit) -> list[GroupResult]:
    """Thirds, head to tail, then given groups."""
    known = [audit.groups[name] for name in GROUP_ORDER if name in audit.groups]
    return known + [group for name, group in audit.groups.items() if name not in GROUP_ORDER]


def _box(entry: ClassResult) -> Row:
    assert entry.logit_margin is not None
    at = dict(zip(QUANTILE_LEVELS, entry.logit_margin.quantiles, strict=True))
    return Row(
        entry.name,
        at[0.5],
        number(at[0.5]),
        entry.group or "",
        band=(at[0.25], at[0.75]),
        whisker=(at[0.05], at[0.95]),
        index=entry.index,
    )


def _accuracy_axis(entries: Iterable[ClassResult]) -> Axis:
    return Axis(_accuracy_domain(entries), "accuracy, %", _percent_tick)


def _accuracy_domain(entries: Iterable[ClassResult]) -> tuple[float, float]:
    """From the tenth below every interval to 1: where all classes are good, their differences are what matters."""
    lows = [entry.interval.low for entry in entries if entry.interval is not None]
    return (math.floor(10 * min(lows, default=0.0)) / 10, 1.0)


def _percent_tick(value: float) -> str:
    return f"{100 * value:g}"


def _plain_tick(value: float) -> str:
    return f"{value:g}".replace("-", "−")
