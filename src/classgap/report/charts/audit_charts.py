"""The charts of an audit."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from markupsafe import Markup

from classgap.audit.audit import Audit
from classgap.audit.figures import ClassResult
from classgap.audit.results import QUANTILE_LEVELS, GroupResult
from classgap.report.charts.dot_chart import Axes, Dot, dot_chart, map_chart
from classgap.report.charts.line_chart import plain_tick
from classgap.report.charts.paper_charts import class_value_chart, weight_norm_chart
from classgap.report.charts.row_chart import Axis, Row, row_chart
from classgap.report.formatting import format_count, format_number, format_percent, format_percent_interval
from classgap.report.ordering import THIRDS, order_groups, sort_by_accuracy

MAX_ROWS = 40  # with more classes, the class chart shows dots instead of rows
MAX_DOTS = 500  # with more classes, charts of secondary values would make the page too large; the CSV file has them
MAX_BOXES = 12
MAX_LABELS = 16  # with more classes, dots have no labels
MAP_COLORS = 8  # with more classes, colors repeat; names on the map distinguish the classes


def class_chart(audit: Audit) -> Markup:
    """Accuracy of each class with its interval, lowest first, colored by third."""
    # Thirds break ties by class index. Sort ties by third as well, so that the colors do not interleave.
    thirds = {name: position for position, name in enumerate(reversed(THIRDS))}
    order = sorted(sort_by_accuracy(audit.classes), key=lambda e: (e.accuracy or 0.0, thirds.get(e.group or "", 0)))
    title = "Accuracy of each class, lowest first"
    description = (
        f"From {format_percent(order[0].accuracy)} % ({order[0].name}) to "
        f"{format_percent(order[-1].accuracy)} % ({order[-1].name}). The table below lists all values."
    )
    if len(order) <= MAX_ROWS:
        rows = [
            Row(e.name, e.accuracy or 0.0, format_percent(e.accuracy), e.group or "", e.interval, index=e.index)
            for e in order
        ]
        return row_chart("classes", title, description, rows, _accuracy_axis(order))
    points = [Dot(i, e.accuracy or 0.0, e.group or "", e.index, e.interval) for i, e in enumerate(order)]
    axes = Axes(
        (0, len(order) - 1),
        _accuracy_domain(order),
        "classes, lowest accuracy first",
        "accuracy, %",
        None,
        _percent_tick,
    )
    return dot_chart("classes", title, description, points, axes, 440)


def group_chart(audit: Audit) -> Markup:
    """Mean accuracy of each group with its interval and its range from worst to best class."""
    groups = [group for group in order_groups(audit.groups) if group.accuracy is not None]
    rows = [
        Row(
            f"{group.name} ({format_count(len(group.members))})",
            group.accuracy or 0.0,
            format_percent(group.accuracy),
            _css_class(group),
            group.interval,
            None if group.min is None or group.max is None else (group.min, group.max),
        )
        for group in groups
    ]
    means = "; ".join(
        f"{group.name} {format_percent(group.accuracy)} % ({format_percent_interval(group.interval)})"
        for group in groups
    )
    return row_chart("groups", "Mean accuracy of each group", f"{means}.", rows, _accuracy_axis(audit.classes))


def margin_chart(audit: Audit) -> Markup | None:
    """Mean output margin of each group, or ``None`` without scores."""
    groups = [group for group in order_groups(audit.groups) if group.margin is not None]
    if not groups:
        return None
    rows = [
        Row(group.name, group.margin or 0.0, format_number(group.margin), _css_class(group), bar_from=0.0)
        for group in groups
    ]
    if (margin := audit.overall.margin) is not None:
        rows.append(Row("all samples", margin, format_number(margin), "other", bar_from=0.0))
    low = min(0.0, *(row.value for row in rows))
    axis = Axis((max(-1.0, low * 1.1), 1.0), "mean of P(true class) − max other P", plain_tick, zero=low < 0)
    means = "; ".join(f"{row.label} {row.text}" for row in rows)
    return row_chart("margins", "Mean output margin of each group", f"{means}.", rows, axis)


def box_chart(audit: Audit) -> Markup | None:
    """Distribution of the logit margins of the hardest classes, or ``None`` if it is unknown."""
    order = [entry for entry in sort_by_accuracy(audit.classes) if entry.logit_margin and entry.logit_margin.quantiles]
    if not order:
        return None
    shown = order if len(order) <= MAX_BOXES else order[: MAX_BOXES - 2] + order[-2:]
    rows = [_box_row(entry) for entry in shown]
    ends = [end for row in rows for end in row.whisker or ()]
    axis = Axis((min(0.0, *ends), max(0.0, *ends)), "logit of the true class − max other logit", plain_tick, zero=True)
    which = "All classes" if len(shown) == len(order) else f"The {MAX_BOXES - 2} hardest and the 2 easiest classes"
    description = (
        f"{which}. Dot: median. Thick line: 25 % to 75 %. Thin line: 5 % to 95 %. "
        "Samples with a negative margin are misclassified."
    )
    return row_chart("boxes", "Distribution of logit margins", description, rows, axis)


def spread_chart(audit: Audit) -> Markup | None:
    """Accuracy against feature spread, one dot per class, or ``None`` without features."""
    entries = [entry for entry in audit.classes if entry.spread is not None and entry.accuracy is not None]
    if len(entries) < 2:
        return None
    found = audit.features.spread_accuracy if audit.features is not None else None
    spreads = [entry.spread or 0.0 for entry in entries]
    labeled = len(entries) <= MAX_LABELS
    points = [
        Dot(e.spread or 0.0, e.accuracy or 0.0, e.group or "", e.index, label=e.name if labeled else "")
        for e in entries
    ]
    room = 0.04 * (max(spreads) - min(spreads))
    x_domain, y_domain = (min(spreads) - room, max(spreads) + room), _accuracy_domain(entries)
    axes = Axes(x_domain, y_domain, "feature spread ‖ŝ‖", "accuracy, %", plain_tick, _percent_tick)
    rho = (
        ""
        if found is None
        else f"Rank correlation {format_number(found.rho)} over {format_count(found.classes)} classes. "
    )
    description = f"{rho}Spread ranges from {format_number(min(spreads))} to {format_number(max(spreads))}."
    return dot_chart("spread", "Accuracy against feature spread", description, points, axes, 460)


def weight_chart(audit: Audit) -> Markup | None:
    """Norm of each class's weights, lowest accuracy first; ``None`` without a head or with too many classes."""
    order = [entry for entry in sort_by_accuracy(audit.classes) if entry.weight_norm is not None]
    if not 2 <= len(order) <= MAX_DOTS:
        return None
    return weight_norm_chart([entry.weight_norm or 0.0 for entry in order], **_by_class(order))


def farthest_chart(audit: Audit) -> Markup | None:
    """Mean distance to the farthest sample of each class; ``None`` without features or with too many classes."""
    order = [entry for entry in sort_by_accuracy(audit.classes) if entry.max_intra_distance is not None]
    if not 2 <= len(order) <= MAX_DOTS:
        return None
    return class_value_chart(
        [entry.max_intra_distance or 0.0 for entry in order],
        **_by_class(order),
        key="distances",
        title="Mean distance to the farthest sample of the class",
        label="mean farthest distance / largest norm",
    )


def _by_class(order: list[ClassResult]) -> dict[str, Any]:
    return {
        "names": [entry.name for entry in order],
        "kinds": [entry.group or "other" for entry in order],
        "indices": [entry.index for entry in order],
        "order": "classes, lowest accuracy first",
    }


def feature_map_chart(audit: Audit) -> Markup | None:
    """2-D map of the features of selected classes, or ``None`` without a map."""
    found = audit.map
    if found is None:
        return None
    indices = {name: i for i, name in enumerate(audit.class_names)}
    kinds = {indices[name]: f"tone{i % MAP_COLORS} place{i}" for i, name in enumerate(found.classes)}
    dots = [
        (Dot(x, y, kinds[target], target), target == prediction)
        for x, y, target, prediction in zip(found.x, found.y, found.target, found.prediction, strict=True)
        if target in kinds
    ]
    names = {kinds[indices[name]]: name for name in found.classes}
    correct, wrong = [dot for dot, ok in dots if ok], [dot for dot, ok in dots if not ok]
    description = (
        f"Samples of {', '.join(found.classes)}. Nearby points have similar features. "
        "Crosses are misclassified samples."
    )
    return map_chart("map", "Feature map of selected classes", description, correct, wrong, names)


def _box_row(entry: ClassResult) -> Row:
    assert entry.logit_margin is not None
    at = dict(zip(QUANTILE_LEVELS, entry.logit_margin.quantiles, strict=True))
    return Row(
        entry.name,
        at[0.5],
        format_number(at[0.5]),
        entry.group or "",
        band=(at[0.25], at[0.75]),
        whisker=(at[0.05], at[0.95]),
        index=entry.index,
    )


def _css_class(group: GroupResult) -> str:
    return group.name if group.kind == "thirds" else "other"


def _accuracy_axis(entries: Iterable[ClassResult]) -> Axis:
    return Axis(_accuracy_domain(entries), "accuracy, %", _percent_tick)


def _accuracy_domain(entries: Iterable[ClassResult]) -> tuple[float, float]:
    """From below the lowest interval, rounded down to a tenth, to 1: keeps differences visible if all are high."""
    lows = [entry.interval.low for entry in entries if entry.interval is not None]
    return (math.floor(10 * min(lows, default=0.0)) / 10, 1.0)


def _percent_tick(value: float) -> str:
    return f"{100 * value:g}"
