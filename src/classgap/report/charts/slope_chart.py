"""Before and after: a line a class from its accuracy on the left to that on the right, groups as thick lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from classgap.report.svg import WIDTH, chart, fitted, linear, round_ticks, segments, tag

TOP, BOTTOM = 40.0, 16.0
LEFT, RIGHT = 250.0, WIDTH - 250.0
HEIGHT = 520.0
NAMES = 14.0  # smallest distance of two names


@dataclass(frozen=True)
class Slope:
    """One line: its two ends (fractions), its kind for the style sheet, and its names if it is to be named."""

    before: float
    after: float
    kind: str
    before_name: str = ""
    after_name: str = ""


def slope_chart(
    key: str, title: str, description: str, thin: Sequence[Slope], thick: Sequence[Slope], sides: tuple[str, str]
) -> Markup:
    """Thin lines behind, thick lines with names in front.

    Args:
        key: tells the chart's ids from others'.
        title: what it shows.
        description: what is to be seen in it.
        thin: classes.
        thick: groups.
        sides: names over the left and the right axis.
    """
    values = [end for slope in [*thin, *thick] for end in (slope.before, slope.after)]
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = max(0.02, 0.05 * (high - low))
    domain = (max(0.0, low - room), min(1.0, high + room))
    y = linear(domain, (HEIGHT - BOTTOM, TOP))
    parts = [segments((((LEFT, y(t)), (RIGHT, y(t))) for t in round_ticks(*domain)), "grid")]
    for x, name in ((LEFT, sides[0]), (RIGHT, sides[1])):
        parts.append(segments([((x, TOP), (x, HEIGHT - BOTTOM))], "zero"))
        parts.append(tag("text", fitted(name, 34), class_="side", x=x, y=TOP - 18, text_anchor="middle"))
    for slopes, weight in ((thin, "thin"), (thick, "thick")):
        for kind in dict.fromkeys(slope.kind for slope in slopes):
            lines = [((LEFT, y(s.before)), (RIGHT, y(s.after))) for s in slopes if s.kind == kind]
            parts.append(segments(lines, f"slope {weight} {kind}"))
    parts += [
        tag("text", f"{100 * t:g} %", class_="tick haloed", x=(LEFT + RIGHT) / 2, y=y(t) + 4, text_anchor="middle")
        for t in round_ticks(*domain)
    ]
    named = [slope for slope in [*thick, *thin] if slope.after_name]
    parts += _names([(y(s.before), s.before_name, s.kind) for s in named], LEFT - 10, "end")
    parts += _names([(y(s.after), s.after_name, s.kind) for s in named], RIGHT + 10, "start")
    return chart(key, title, description, HEIGHT, *parts)


def _names(places: list[tuple[float, str, str]], x: float, anchor: str) -> list[Markup]:
    """Names beside an axis, moved down where they would overlap, and back up where they would leave the chart."""
    order = sorted((place for place in places if place[1]), key=lambda place: place[0])
    tops: list[float] = []
    for y, _, _ in order:
        tops.append(max(y, tops[-1] + NAMES) if tops else y)
    limit = HEIGHT - 6
    for i in reversed(range(len(tops))):
        tops[i] = min(tops[i], limit)
        limit = tops[i] - NAMES
    return [
        tag("text", fitted(name, 32), class_=f"end {kind}", x=x, y=top + 4, text_anchor=anchor)
        for top, (_, name, kind) in zip(tops, order, strict=True)
    ]
