"""A chart of labelled rows: a dot, an interval around it, and a thin line for the whole range, one row a thing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from classgap.report.svg import WIDTH, Point, Scale, chart, dots, fitted, linear, round_ticks, segments, tag

ROW = 24.0
TOP, BOTTOM = 8.0, 34.0
LABEL_LETTERS = 28  # that fit left of the plot


@dataclass(frozen=True)
class Row:
    """One row.

    Attributes:
        label: its name.
        value: where the dot is.
        text: the value in words, at the right.
        kind: class name for the style sheet: "easy", "gained" …
        band: ends of the thick line, such as an interval.
        whisker: ends of the thin line, such as smallest and largest.
        index: the class that the row stands for.
        bar_from: if given, a bar runs from here to the value.
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
        label: what it measures.
        tick: how a tick is written.
        zero: whether to draw a line at 0.
    """

    domain: Point
    label: str
    tick: Callable[[float], str]
    zero: bool = False


def row_chart(key: str, title: str, description: str, rows: Sequence[Row], axis: Axis) -> Markup:
    """Rows from top to bottom on one axis."""
    left, right = 210.0, WIDTH - 84.0
    height = TOP + ROW * len(rows) + BOTTOM
    x = linear(axis.domain, (left, right))
    frame = _frame(axis, x, height)
    drawn = [_row(row, x, TOP + ROW * (i + 0.5), left, right) for i, row in enumerate(rows)]
    return chart(key, title, description, height, frame, *drawn)


def _frame(axis: Axis, x: Scale, height: float) -> Markup:
    floor = height - BOTTOM
    ticks = round_ticks(*axis.domain)
    grid = segments((((x(t), TOP), (x(t), floor)) for t in ticks), "grid")
    zero = segments([((x(0.0), TOP), (x(0.0), floor))], "zero") if axis.zero else Markup("")
    texts = [tag("text", axis.tick(t), class_="tick", x=x(t), y=floor + 14, text_anchor="middle") for t in ticks]
    middle = (x(axis.domain[0]) + x(axis.domain[1])) / 2
    name = tag("text", axis.label, class_="axis", x=middle, y=floor + 29, text_anchor="middle")
    return Markup("").join([grid, zero, *texts, name])


def _row(row: Row, x: Scale, y: float, left: float, right: float) -> Markup:
    parts = [
        tag("title", f"{row.label}: {row.text}"),
        tag("rect", class_="hit", x=0, y=y - ROW / 2, width=WIDTH, height=ROW),
        tag("text", fitted(row.label, LABEL_LETTERS), class_="name", x=left - 12, y=y + 4, text_anchor="end"),
    ]
    if row.bar_from is not None:
        start, end = sorted((x(row.bar_from), x(row.value)))
        parts.append(tag("rect", class_="bar", x=start, y=y - 5, width=max(end - start, 1.0), height=10, rx=2))
    if row.whisker is not None:
        parts.append(segments([((x(row.whisker[0]), y), (x(row.whisker[1]), y))], "whisker"))
    if row.band is not None:
        parts.append(segments([((x(row.band[0]), y), (x(row.band[1]), y))], "band"))
    parts.append(dots([(x(row.value), y)], "dot"))
    parts.append(tag("text", row.text, class_="value", x=right + 14, y=y + 4))
    return tag("g", *parts, class_=f"row {row.kind}", data_class=None if row.index is None else str(row.index))
