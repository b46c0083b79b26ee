"""A chart with one labeled row per class or group: a dot, a thick line (interval) and a thin line (range)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from classgap.report.charts.svg import (
    Layout,
    Point,
    Scale,
    draw_both,
    draw_dots,
    draw_lines,
    linear_scale,
    nice_ticks,
    svg_chart,
    tag,
)
from classgap.report.formatting import truncate

TOP, BOTTOM = 8.0, 34.0


@dataclass(frozen=True)
class Row:
    """One row.

    Attributes:
        label: text on the left.
        value: position of the dot.
        text: formatted value, on the right.
        kind: CSS class, for example "easy" or "gained".
        band: ends of the thick line, for example an interval.
        whisker: ends of the thin line, for example minimum and maximum.
        index: class index, if the row shows a class.
        bar_from: start of a bar that ends at the value.
    """

    label: str
    value: float
    text: str
    kind: str = ""
    band: Point | None = None
    whisker: Point | None = None
    index: int | None = None
    bar_from: float | None = None


@dataclass(frozen=True)
class Axis:
    """The horizontal axis.

    Attributes:
        domain: smallest and largest value.
        label: axis label.
        tick: tick format.
        zero: whether to draw a line at 0.
    """

    domain: Point
    label: str
    tick: Callable[[float], str]
    zero: bool = False


@dataclass(frozen=True)
class _Frame:
    """Places in a row: the label is left of the plot, or above it in a narrow window.

    Attributes:
        row_height: height of a row.
        left: left end of the plot.
        right: right end of the plot.
        label_width: columns of the label.
        middle: distance from the top of a row to its line.
        baseline: distance from the top of a row to the baseline of its texts.
    """

    row_height: float
    left: float
    right: float
    label_width: int
    middle: float
    baseline: float

    @classmethod
    def from_layout(cls, layout: Layout) -> _Frame:
        if layout.narrow:
            return cls(40.0, 14.0, layout.width - 14.0, 42, 28.0, 16.0)
        return cls(24.0, 210.0, layout.width - 84.0, 24, 12.0, 16.0)


def row_chart(key: str, title: str, description: str, rows: Sequence[Row], axis: Axis) -> Markup:
    """Draw the rows from top to bottom on one axis."""

    def draw(layout: Layout) -> Markup:
        frame = _Frame.from_layout(layout)
        height = TOP + frame.row_height * len(rows) + BOTTOM
        x = linear_scale(axis.domain, (frame.left, frame.right))
        drawn = [_draw_row(row, x, TOP + frame.row_height * i, frame, layout) for i, row in enumerate(rows)]
        return svg_chart(key, title, description, height, _draw_axis(axis, x, height, layout), *drawn, layout=layout)

    return draw_both(draw)


def _draw_axis(axis: Axis, x: Scale, height: float, layout: Layout) -> Markup:
    floor = height - BOTTOM
    ticks = nice_ticks(*axis.domain, layout.ticks)
    grid = draw_lines((((x(t), TOP), (x(t), floor)) for t in ticks), "grid")
    zero = draw_lines([((x(0.0), TOP), (x(0.0), floor))], "zero") if axis.zero else Markup("")
    texts = [tag("text", axis.tick(t), class_="tick", x=x(t), y=floor + 14, text_anchor="middle") for t in ticks]
    middle = (x(axis.domain[0]) + x(axis.domain[1])) / 2
    label = tag("text", axis.label, class_="axis", x=middle, y=floor + 29, text_anchor="middle")
    return Markup("").join([grid, zero, *texts, label])


def _draw_row(row: Row, x: Scale, top: float, frame: _Frame, layout: Layout) -> Markup:
    y, baseline = top + frame.middle, top + frame.baseline
    label = {"x": 0.0} if layout.narrow else {"x": frame.left - 12, "text_anchor": "end"}
    value = {"x": layout.width, "text_anchor": "end"} if layout.narrow else {"x": frame.right + 14}
    parts = [
        tag("title", f"{row.label}: {row.text}"),
        tag("rect", class_="hit", x=0, y=top, width=layout.width, height=frame.row_height),
        tag("text", truncate(row.label, frame.label_width), class_="name", y=baseline, **label),
    ]
    if row.bar_from is not None:
        start, end = sorted((x(row.bar_from), x(row.value)))
        parts.append(tag("rect", class_="bar", x=start, y=y - 5, width=max(end - start, 1.0), height=10, rx=2))
    if row.whisker is not None:
        parts.append(draw_lines([((x(row.whisker[0]), y), (x(row.whisker[1]), y))], "whisker"))
    if row.band is not None:
        parts.append(draw_lines([((x(row.band[0]), y), (x(row.band[1]), y))], "band"))
    parts.append(draw_dots([(x(row.value), y)], "dot"))
    parts.append(tag("text", row.text, class_="value", y=baseline, **value))
    return tag("g", *parts, class_=f"row {row.kind}", data_class=None if row.index is None else str(row.index))
