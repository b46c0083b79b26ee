"""A line chart over releases: one line per metric, with intervals."""

from __future__ import annotations

import math
from itertools import pairwise

from markupsafe import Markup

from classgap.audit.history import History
from classgap.audit.results import Interval
from classgap.report.charts.end_labels import place_end_labels
from classgap.report.charts.svg import (
    Layout,
    draw_both,
    draw_dots,
    draw_levels,
    draw_lines,
    linear_scale,
    nice_ticks,
    svg_chart,
    tag,
)
from classgap.report.formatting import display_width, format_percent, truncate

HEIGHT, TOP, BOTTOM = 380.0, 20.0, 44.0
LETTER_WIDTH = 7.5  # approximate
MAX_LETTERS = 16  # of a release's name below the axis
SERIES = (
    ("overall", "overall_interval", "accuracy", "other"),
    ("hard", "hard_interval", "hard third", "hard"),
    ("worst_class", "worst_interval", "worst class", "tone3"),
    ("gap", "gap_interval", "gap", "tone2"),
)

Point = tuple[int, float, Interval | None]


def history_chart(history: History) -> Markup:
    """Draw accuracy, hard third, worst class and gap over releases."""
    return draw_both(lambda layout: _draw(history, layout))


def _draw(history: History, layout: Layout) -> Markup:
    releases = history.releases
    left, right = (50.0, layout.width - 146.0) if layout.narrow else (60.0, layout.width - 190.0)
    x = linear_scale((0, max(1, len(releases) - 1)), (left + 20, right - 20))
    lines = [(label, kind, _points(history, value, interval)) for value, interval, label, kind in SERIES]
    ends = [end for _, _, points in lines for _, value, interval in points for end in (value, *(interval or ()))]
    low, high = min([0.0, *ends]), max([0.1, *(math.ceil(10 * end) / 10 for end in ends)])
    y = linear_scale((low, high), (HEIGHT - BOTTOM, TOP))
    parts = draw_levels(y, nice_ticks(low, high), left, right, lambda tick: f"{100 * tick:g} %")
    names = [truncate(release.name, MAX_LETTERS) for release in releases]
    needed = LETTER_WIDTH * (max(map(display_width, names)) + 1)
    for i in range(0, len(releases), math.ceil(needed / (x(1) - x(0)))):  # as many as fit side by side
        parts.append(tag("text", names[i], class_="tick", x=x(i), y=HEIGHT - BOTTOM + 22, text_anchor="middle"))
    for _, kind, points in lines:
        whiskers = [((x(i), y(interval.low)), (x(i), y(interval.high))) for i, _, interval in points if interval]
        parts.append(draw_lines(whiskers, f"whisker {kind}"))
        steps = [((x(i), y(a)), (x(j), y(b))) for (i, a, _), (j, b, _) in pairwise(points) if j == i + 1]
        parts.append(draw_lines(steps, f"slope thick {kind}"))
        parts.append(draw_dots([(x(i), y(value)) for i, value, _ in points], f"large {kind}"))
    latest = [(label, kind, points[-1][1]) for label, kind, points in lines if points]
    at_ends = [(y(value), _name_value(label, value), kind) for label, kind, value in latest]
    parts += place_end_labels(at_ends, right + 8, HEIGHT - BOTTOM)
    last = releases[-1]
    description = (
        f"{len(releases)} releases. Last, {last.name}: accuracy {format_percent(last.overall)} %, worst class "
        f"{format_percent(last.worst_class)} %. The table below lists all values."
    )
    title = "Accuracy, hard third, worst class and gap over releases"
    return svg_chart("history", title, description, HEIGHT, *parts, layout=layout)


def _points(history: History, value: str, interval: str) -> list[Point]:
    found = [(i, getattr(release, value), getattr(release, interval)) for i, release in enumerate(history.releases)]
    return [(i, number, bounds) for i, number, bounds in found if number is not None]


def _name_value(label: str, value: float) -> str:
    return f"{label} {format_percent(value)} {'points' if label == 'gap' else '%'}"
