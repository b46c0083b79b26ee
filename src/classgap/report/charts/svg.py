"""SVG primitives: escaped elements, a linear scale, axis ticks and the frame of a chart.

Charts set no colors. Elements carry class names and the style sheet of the page colors them, so one drawing serves
light mode, dark mode and print. Most charts are drawn twice, for wide and for narrow windows, because text that is
scaled with a chart would be too small on a phone; the style sheet shows one of the two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

Scale = Callable[[float], float]
Point = tuple[float, float]


@dataclass(frozen=True)
class Layout:
    """Size of a drawing.

    Attributes:
        width: width in chart units; the page scales it.
        ticks: about this many ticks on the horizontal axis.
        narrow: whether it is the drawing for narrow windows.
    """

    width: float
    ticks: int
    narrow: bool = False


WIDE, NARROW = Layout(960.0, 5), Layout(400.0, 4, narrow=True)


def draw_both(draw: Callable[[Layout], Markup]) -> Markup:
    """Return the drawings for wide and for narrow windows."""
    return draw(WIDE) + draw(NARROW)


def tag(name: str, *children: str | Markup, **attributes: str | float | None) -> Markup:
    """Return an element with escaped text and attributes.

    ``class_`` becomes ``class``, other underscores become hyphens, and attributes that are ``None`` are omitted.

    >>> tag("text", "a < b", class_="label", x=1.25)
    Markup('<text class="label" x="1.2">a &lt; b</text>')
    """
    inside = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_format_attribute(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    content = Markup("").join(children)
    return Markup(f"<{name}{inside}>{content}</{name}>" if content else f"<{name}{inside}/>")


def svg_chart(
    key: str, title: str, description: str, height: float, *children: Markup, layout: Layout | None = None
) -> Markup:
    """Return an ``svg`` element that screen readers announce by its title and description.

    The narrow drawing refers to the title and description of the wide one, which comes before it.

    Args:
        key: prefix of the chart's ids, unique on the page.
        title: short title.
        description: one or two sentences on the content.
        height: height in chart units.
        children: the drawing.
        layout: size of the drawing; ``None`` if positions are in percent and one unit is one pixel.
    """
    if layout is None:
        kind, scaling = "chart fluid", {"width": "100%", "height": format_coordinate(height)}
    else:
        kind = "chart for-narrow" if layout.narrow else "chart for-wide"
        scaling = {"viewBox": f"0 0 {format_coordinate(layout.width)} {format_coordinate(height)}"}
    texts = [tag("title", title, id=f"{key}-title"), tag("desc", description, id=f"{key}-desc")]
    return tag(
        "svg",
        *(texts if layout is None or not layout.narrow else []),
        *children,
        class_=kind,
        role="img",
        aria_labelledby=f"{key}-title {key}-desc",
        **scaling,
    )


def linear_scale(domain: Point, target: Point) -> Scale:
    """Return the linear function that maps ``domain`` to ``target``.

    >>> linear_scale((0, 1), (100, 0))(0.25)
    75.0
    """
    low, high = domain
    width = (high - low) or 1.0  # an empty domain maps to the start
    return lambda value: target[0] + (value - low) / width * (target[1] - target[0])


def nice_ticks(low: float, high: float, target: int = 5) -> list[float]:
    """Return about ``target`` round numbers within [low, high].

    >>> nice_ticks(0, 1)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    if not high > low:
        return [low]
    raw = (high - low) / target
    unit = 10.0 ** math.floor(math.log10(raw))
    step = unit * min((m for m in (1, 2, 5, 10) if m * unit >= raw * 0.999), default=10)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def draw_levels(
    y: Scale, ticks: Sequence[float], left: float, right: float, text: Callable[[float], str]
) -> list[Markup]:
    """Draw a vertical axis: grid lines from ``left`` to ``right``, and the ticks at their left ends.

    >>> draw_levels(lambda value: 100 - value, [50.0], 10, 90, "{:g} %".format)[1]
    Markup('<text class="tick" x="2" y="54" text-anchor="end">50 %</text>')
    """
    grid = draw_lines((((left, y(tick)), (right, y(tick))) for tick in ticks), "grid")
    return [grid, *(tag("text", text(t), class_="tick", x=left - 8, y=y(t) + 4, text_anchor="end") for t in ticks)]


def draw_dots(points: Sequence[Point], class_: str, indices: Iterable[int] = ()) -> Markup:
    """Draw dots as one path of zero-length segments with round caps, a tenth of the size of as many circles.

    Args:
        points: centers.
        class_: CSS classes.
        indices: class index of each dot, for tooltips and clicks.
    """
    if not points:
        return Markup("")
    path = "".join(f"M{format_coordinate(x)} {format_coordinate(y)}h0" for x, y in points)
    return tag("path", d=path, class_=f"dots {class_}", data_classes=",".join(map(str, indices)) or None)


def draw_lines(lines: Iterable[tuple[Point, Point]], class_: str) -> Markup:
    """Draw straight lines as one path."""
    path = "".join(f"M{_format_point(start)}{_format_line(start, end)}" for start, end in lines)
    return tag("path", d=path, class_=class_) if path else Markup("")


def format_coordinate(value: float) -> str:
    """Format a coordinate with at most one decimal.

    >>> format_coordinate(12.0), format_coordinate(0.25), format_coordinate(-0.01)
    ('12', '0.2', '0')
    """
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def _format_point(point: Point) -> str:
    return f"{format_coordinate(point[0])} {format_coordinate(point[1])}"


def _format_line(start: Point, end: Point) -> str:
    """Format the end of a line; vertical and horizontal lines are shorter to write."""
    if format_coordinate(start[0]) == format_coordinate(end[0]):
        return f"V{format_coordinate(end[1])}"
    if format_coordinate(start[1]) == format_coordinate(end[1]):
        return f"H{format_coordinate(end[0])}"
    return f"L{_format_point(end)}"


def _format_attribute(value: str | float | None) -> str:
    return format_coordinate(value) if isinstance(value, int | float) else str(escape(value or ""))
