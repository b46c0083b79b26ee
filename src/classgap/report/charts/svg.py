"""A small SVG writer: elements with escaped text, a linear scale, round ticks, and the frame of a chart.

Charts carry no colours of their own: elements have class names, and the page's style sheet colours them, so that dark
mode and print need no second drawing.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterable, Sequence

from markupsafe import Markup, escape

Scale = Callable[[float], float]
Point = tuple[float, float]

WIDTH = 960  # of every chart, in its own units; the page scales it


def tag(name: str, *children: str | Markup, **attributes: str | float | None) -> Markup:
    """An element. Text is escaped; ``class_`` is ``class``, other underscores are hyphens, ``None`` is left out.

    >>> tag("text", "a < b", class_="label", x=1.25)
    Markup('<text class="label" x="1.2">a &lt; b</text>')
    """
    inside = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_attribute(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    content = Markup("").join(children)
    # Void elements close themselves: half the size of a thousand gridlines.
    return Markup(f"<{name}{inside}>{content}</{name}>" if content else f"<{name}{inside}/>")


def chart(key: str, title: str, description: str, height: float, *children: Markup, width: float = WIDTH) -> Markup:
    """A whole chart that a screen reader announces by its title and description.

    Args:
        key: tells the chart's ids from those of other charts on the page.
        title: what it shows, in a few words.
        description: what is to be seen in it, in a sentence or two.
        height: in the chart's units.
        children: what is drawn.
        width: in the chart's units.
    """
    return tag(
        "svg",
        tag("title", title, id=f"{key}-title"),
        tag("desc", description, id=f"{key}-desc"),
        *children,
        class_="chart",
        viewBox=f"0 0 {fixed(width)} {fixed(height)}",
        role="img",
        aria_labelledby=f"{key}-title {key}-desc",
    )


def linear(domain: Point, target: Point) -> Scale:
    """The straight line that takes ``domain`` to ``target``.

    >>> linear((0, 1), (100, 0))(0.25)
    75.0
    """
    low, high = domain
    width = (high - low) or 1.0  # a single value sits at the start
    return lambda value: target[0] + (value - low) / width * (target[1] - target[0])


def round_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers within [low, high], about as many as asked.

    >>> round_ticks(0, 1)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    if not high > low:
        return [low]
    raw = (high - low) / about
    unit = 10.0 ** math.floor(math.log10(raw))
    step = unit * min((m for m in (1, 2, 5, 10) if m * unit >= raw * 0.999), default=10)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def fitted(text: str, width: int) -> str:
    """``text`` cut to ``width`` columns; letters of East Asian scripts take two.

    >>> fitted("a very long name", 8)
    'a very …'
    """
    used = 0
    for i, letter in enumerate(text):
        used += columns(letter)
        if used > width:
            kept = text[:i]
            while kept and sum(map(columns, kept)) > width - 1:
                kept = kept[:-1]
            return kept + "…"
    return text


def columns(letter: str) -> int:
    """How many columns a letter takes.

    >>> columns("a"), columns("猫")
    (1, 2)
    """
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def dots(points: Sequence[Point], class_: str, indices: Iterable[int] = ()) -> Markup:
    """Round dots as one path: segments of no length with round ends, a tenth of the size of as many circles.

    Args:
        points: centres.
        class_: for the style sheet.
        indices: the class that each dot stands for, for pointing and clicking.
    """
    if not points:
        return Markup("")
    path = "".join(f"M{fixed(x)} {fixed(y)}h0" for x, y in points)
    return tag("path", d=path, class_=f"dots {class_}", data_classes=",".join(map(str, indices)) or None)


def segments(lines: Iterable[tuple[Point, Point]], class_: str) -> Markup:
    """Straight lines as one path."""
    path = "".join(f"M{fixed(x1)} {fixed(y1)}L{fixed(x2)} {fixed(y2)}" for (x1, y1), (x2, y2) in lines)
    return tag("path", d=path, class_=class_) if path else Markup("")


def fixed(value: float) -> str:
    """A coordinate with one decimal, as short as it gets.

    >>> fixed(12.0), fixed(0.25), fixed(-0.01)
    ('12', '0.2', '0')
    """
    text = f"{value:.1f}"
    text = text.removesuffix(".0")
    return "0" if text == "-0" else text


def _attribute(value: str | float | None) -> str:
    return fixed(value) if isinstance(value, int | float) else str(escape(value or ""))
