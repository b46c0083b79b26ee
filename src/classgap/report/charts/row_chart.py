"""A chart with one labeled row per class or group: a dot, a thick line (interval) and a thin line (range)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from classgap.report.charts.svg import (
    WIDTH,
    Point,
    Scale,
    draw_dots,
    draw_lines,
    linear_scale,
    nice_ticks,
    svg_chart,
    tag,
)
from classgap.report.formatting import truncate

ROW_HEIGHT = 24.0
TOP, BOTTOM = 8.0, 34.0
LEFT, RIGHT = 210.0, WIDTH - 84.0
LABEL_WIDTH = 28  # columns left of the plot


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


def row_chart(key: str, title: str, description: str, rows: Sequence[Row], axis: Axis) -> Markup:
    """Draw the rows from top to bottom on one axis."""
    height = TOP + ROW_HEIGHT * len(rows) + BOTTOM
    x = linear_scale(axis.domain, (LEFT, RIGHT))
    drawn = [_draw_row(row, x, TOP + ROW_HEIGHT * (i + 0.5)) for i, row in enumerate(rows)]
    return svg_chart(key, title, description, height, _draw_frame(axis, x, height), *drawn)


def _draw_frame(axis: Axis, x: Scale, height: float) -> Markup:
    floor = height - BOTTOM
    ticks = nice_ticks(*axis.domain)
    grid = draw_lines((((x(t), TOP), (x(t), floor)) for t in ticks), "grid")
    zero = draw_lines([((x(0.0), TOP), (x(0.0), floor))], "zero") if axis.zero else Markup("")
    texts = [tag("text", axis.tick(t), class_="tick", x=x(t), y=floor + 14, text_anchor="middle") for t in ticks]
    middle = (x(axis.domain[0]) + x(axis.domain[1])) / 2
    label = tag("text", axis.label, class_="axis", x=middle, y=floor + 29, text_anchor="middle")
    return Markup("").join([grid, zero, *texts, label])


def _draw_row(row: Row, x: Scale, y: float) -> Markup:
    parts = [
        tag("title", f"{row.label}: {row.text}"),
        tag("rect", class_="hit", x=0, y=y - ROW_HEIGHT / 2, width=WIDTH, height=ROW_HEIGHT),
        tag("text", truncate(row.label, LABEL_WIDTH), class_="name", x=LEFT - 12, y=y + 4, text_anchor="end"),
    ]
    if row.bar_from is not None:
        start, end = sorted((x(row.bar_from), x(row.value)))
        parts.append(tag("rect", class_="bar", x=start, y=y - 5, width=max(end - start, 1.0), height=10, rx=2))
    if row.whisker is not None:
        parts.append(draw_lines([((x(row.whisker[0]), y), (x(row.whisker[1]), y))], "whisker"))
    if row.band is not None:
        parts.append(draw_lines([((x(row.band[0]), y), (x(row.band[1]), y))], "band"))
    parts.append(draw_dots([(x(row.value), y)], "dot"))
    parts.append(tag("text", row.text, class_="value", x=RIGHT + 14, y=y + 4))
    return tag("g", *parts, class_=f"row {row.kind}", data_class=None if row.index is None else str(row.index))
