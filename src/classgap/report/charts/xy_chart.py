"""A general chart of lines, dots and intervals in a frame with two axes, for figures of papers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from classgap.report.charts.end_labels import place_end_labels
from classgap.report.charts.svg import (
    Layout,
    Point,
    draw_both,
    draw_dots,
    draw_levels,
    draw_lines,
    linear_scale,
    nice_ticks,
    svg_chart,
    tag,
)
from classgap.report.formatting import truncate

HEIGHT, TOP, BOTTOM = 380.0, 20.0, 56.0
N_TONES = 8
MAX_LABEL = 22
MAX_MARKED = 60  # points of a line that get dots; clouds always do


@dataclass(frozen=True)
class Series:
    """One line or cloud of dots.

    Attributes:
        label: Name, shown at the right end.
        points: Positions.
        intervals: Lower and upper end at each point, or ``None``.
        line: Whether to connect the points.
        paper: Whether the numbers are the paper's; drawn thin.
    """

    label: str
    points: tuple[Point, ...]
    intervals: tuple[tuple[float, float] | None, ...] = ()
    line: bool = True
    paper: bool = False


@dataclass(frozen=True)
class Axes:
    """Labels of the axes, and names in place of numbers on the horizontal one."""

    x: str
    y: str
    names: tuple[str, ...] = ()


def xy_chart(
    key: str,
    title: str,
    description: str,
    series: Sequence[Series],
    axes: Axes,
    labels: Sequence[str] | None = None,
) -> Markup:
    """Draw series in one frame.

    Args:
        key: prefix of the chart's ids, unique on the page.
        title: short title.
        description: one or two sentences on the content.
        series: what to draw; the color of a series is that of its label.
        axes: labels of the axes.
        labels: labels of all series of several charts, so that a label has one color in all of them.
    """
    names = [each.label for each in series] if labels is None else labels
    tones = {label: i % N_TONES for i, label in enumerate(dict.fromkeys(names))}
    x_domain = _domain([point[0] for each in series for point in each.points], 0.0)
    ends = [end for each in series for interval in each.intervals if interval for end in interval]
    y_domain = _domain([*(point[1] for each in series for point in each.points), *ends], 0.06)

    def draw(layout: Layout) -> Markup:
        left, right = (50.0, layout.width - 120.0) if layout.narrow else (70.0, layout.width - 210.0)
        x = linear_scale(x_domain, (left + 16, right - 16))
        y = linear_scale(y_domain, (HEIGHT - BOTTOM, TOP))
        parts = draw_levels(y, nice_ticks(*y_domain), left, right, "{:g}".format)
        places = [*enumerate(axes.names)] if axes.names else [(t, f"{t:g}") for t in nice_ticks(*x_domain)]
        step = -(-len(places) // (4 if layout.narrow else 12))
        for place, name in places[::step]:
            text = truncate(name, 12)
            parts.append(tag("text", text, class_="tick", x=x(place), y=HEIGHT - BOTTOM + 20, text_anchor="middle"))
        middle = (left + right) / 2
        parts.append(tag("text", axes.x, class_="axis", x=middle, y=HEIGHT - 10, text_anchor="middle"))
        parts.append(tag("text", axes.y, class_="axis", x=left, y=TOP - 7, text_anchor="start"))
        at_ends = []
        for each in series:
            kind = f"tone{tones[each.label]}"
            points = [(x(px), y(py)) for px, py in each.points]
            whiskers = [
                ((x(px), y(interval[0])), (x(px), y(interval[1])))
                for (px, _), interval in zip(each.points, each.intervals, strict=False)
                if interval is not None
            ]
            parts.append(draw_lines(whiskers, f"whisker {kind}"))
            if each.line:
                parts.append(draw_lines(pairwise(points), f"slope {'thin' if each.paper else 'thick'} {kind}"))
            if not each.line or len(points) <= MAX_MARKED:
                size = "tiny" if each.paper else "large" if len(points) <= MAX_MARKED else "small"
                parts.append(draw_dots(points, f"{size} {kind}"))
            if points:
                label = f"{each.label} (paper)" if each.paper else each.label
                at_ends.append((points[-1][1], truncate(label, MAX_LABEL), kind))
        parts += place_end_labels(at_ends, right + 6, HEIGHT - BOTTOM)
        return svg_chart(key, title, description, HEIGHT, *parts, layout=layout)

    return draw_both(draw)


def _domain(values: Sequence[float], room: float) -> Point:
    low, high = min(values, default=0.0), max(values, default=1.0)
    width = (high - low) or abs(high) or 1.0
    return low - room * width, high + room * width
