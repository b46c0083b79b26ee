"""A chart of lines on two axes, each with its own color and dashes, named in a legend."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from markupsafe import Markup

from classgap.report.charts.dot_chart import Axes, Frame, draw_frame
from classgap.report.charts.legend import SAMPLE_WIDTH, draw_legend
from classgap.report.charts.marks import draw_marks
from classgap.report.charts.svg import (
    Layout,
    Point,
    Scale,
    draw_both,
    draw_lines,
    format_coordinate,
    svg_chart,
    tag,
)

TONES, DASHES = 8, 6
MARKS = 9  # marks on a line


@dataclass(frozen=True)
class Line:
    """One line.

    Attributes:
        name: text in the legend.
        x: horizontal values, ascending.
        y: vertical values; the line is broken where one is ``None`` or not finite.
        kind: CSS class of the color, for example "hard"; by default the next of eight.
        dash: number of the dash pattern; by default the next of six, so that lines differ without color.
        mark: number of a shape to draw on the line at some of its points; see :mod:`classgap.report.charts.marks`.
        step: whether the value changes at each x at once, as a cumulative distribution does.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    kind: str = ""
    dash: int | None = None
    mark: int | None = None
    step: bool = field(default=False, kw_only=True)


def plain_tick(value: float) -> str:
    """Format a number with a minus sign."""
    return f"{value:g}".replace("-", "−")


def line_chart(
    key: str,
    title: str,
    description: str,
    lines: Sequence[Line],
    *,
    x_label: str,
    y_label: str,
    x_domain: Point | None = None,
    y_domain: Point | None = None,
    x_tick: Callable[[float], str] = plain_tick,
    y_tick: Callable[[float], str] = plain_tick,
    zero: bool = False,
    height: float = 400.0,
) -> Markup:
    """Draw lines on two axes.

    Args:
        key: prefix of the chart's ids, unique on the page.
        title: short title.
        description: one or two sentences on the content.
        lines: the lines.
        x_label: label of the horizontal axis.
        y_label: label of the vertical axis.
        x_domain: ends of the horizontal axis; by default those of the lines.
        y_domain: ends of the vertical axis; by default those of the lines with some room.
        x_tick: format of the ticks of the horizontal axis.
        y_tick: format of the ticks of the vertical axis.
        zero: whether to draw a vertical line at 0.
        height: height of the plot in the wide drawing.

    >>> chart = line_chart("l", "Lines", "Two.", [Line("a", [0, 1], [0, 2])], x_label="x", y_label="y")
    >>> chart.count("<svg"), 'class="line tone0 dash0"' in chart
    (2, True)
    """
    for line in lines:
        if len(line.x) != len(line.y):
            raise ValueError(
                f"x and y of the line {line.name!r} must have the same length, got {len(line.x)} and {len(line.y)}."
            )
    styled = [
        replace(line, kind=line.kind or f"tone{i % TONES}", dash=i % DASHES if line.dash is None else line.dash)
        for i, line in enumerate(lines)
    ]
    x_domain = x_domain or _ends(x for line in styled for x in line.x)
    if y_domain is None:
        low, high = _ends(y for line in styled for y in line.y if y is not None)
        room = 0.05 * (high - low)
        y_domain = low if low == 0 else low - room, high + room
    axes = Axes(x_domain, y_domain, x_label, y_label, x_tick, y_tick)

    def draw(layout: Layout) -> Markup:
        frame, legend = frame_below(layout, height, [(line.name, _sample(line)) for line in styled])
        x, y = frame.scales(axes)
        parts = [*legend, draw_frame(axes, x, y, frame)]
        if zero and x_domain[0] <= 0 <= x_domain[1]:
            parts.append(draw_lines([((x(0.0), frame.top), (x(0.0), frame.floor))], "zero"))
        parts += [_draw_line(line, x, y) for line in styled]
        return svg_chart(key, title, description, frame.height, *parts, layout=layout)

    return draw_both(draw)


def frame_below(
    layout: Layout, height: float, items: Sequence[tuple[str, Callable[[float, float], Markup]]]
) -> tuple[Frame, list[Markup]]:
    """Draw a legend and return the frame of the plot below it."""
    frame = Frame.from_layout(layout, height)
    legend, taken = draw_legend(items, frame.left, frame.right)
    moved = replace(frame, height=frame.height + taken, top=frame.top + taken, floor=frame.floor + taken)
    return moved, legend


def _sample(line: Line) -> Callable[[float, float], Markup]:
    def draw(x: float, y: float) -> Markup:
        path = f"M{format_coordinate(x)} {format_coordinate(y)}h{SAMPLE_WIDTH:g}"
        drawn = tag("path", class_=f"line {line.kind} dash{line.dash}", d=path)
        return drawn + _draw_mark(line, [(x + SAMPLE_WIDTH / 2, y)])

    return draw


def _draw_line(line: Line, x: Scale, y: Scale) -> Markup:
    path, drawing, places = "", False, []
    for a, b in zip(line.x, line.y, strict=True):
        if b is None or not math.isfinite(b) or not math.isfinite(a):
            drawing = False
            continue
        places.append((x(a), y(b)))
        at, height = format_coordinate(x(a)), format_coordinate(y(b))
        path += f"M{at} {height}" if not drawing else f"H{at}V{height}" if line.step else f"L{at} {height}"
        if not drawing:
            path += "h0"  # a single point is a dot
        drawing = True
    if not path:
        return Markup("")
    return tag("path", class_=f"line {line.kind} dash{line.dash}", d=path) + _draw_mark(line, _spaced(places))


def _draw_mark(line: Line, places: Sequence[Point]) -> Markup:
    return Markup("") if line.mark is None else draw_marks(places, line.mark, line.kind)


def _spaced(places: Sequence[Point]) -> list[Point]:
    """Choose about MARKS of the points, including both ends."""
    count = min(MARKS, len(places))
    return [places[round(i * (len(places) - 1) / max(1, count - 1))] for i in range(count)]


def _ends(values: Iterable[float]) -> Point:
    finite = [value for value in values if math.isfinite(value)]
    return (min(finite), max(finite)) if finite else (0.0, 1.0)
