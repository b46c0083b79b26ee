"""A slope chart: accuracy before on the left, after on the right, one line per class and thick lines for groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from classgap.report.charts.svg import WIDTH, draw_lines, linear_scale, nice_ticks, svg_chart, tag
from classgap.report.formatting import truncate

TOP, BOTTOM = 40.0, 16.0
LEFT, RIGHT = 250.0, WIDTH - 250.0
HEIGHT = 520.0
LINE_HEIGHT = 14.0  # smallest distance between two labels


@dataclass(frozen=True)
class Slope:
    """One line: accuracy before and after, CSS class, and a label at each end."""

    before: float
    after: float
    kind: str
    before_label: str = ""
    after_label: str = ""


def slope_chart(
    key: str, title: str, description: str, thin: Sequence[Slope], thick: Sequence[Slope], sides: tuple[str, str]
) -> Markup:
    """Draw thin lines behind thick ones.

    Args:
        key: prefix of the chart's ids, unique on the page.
        title: short title.
        description: one or two sentences on the content.
        thin: classes.
        thick: groups.
        sides: titles of the left and right axis.
    """
    values = [end for slope in [*thin, *thick] for end in (slope.before, slope.after)]
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = max(0.02, 0.05 * (high - low))
    domain = (max(0.0, low - room), min(1.0, high + room))
    y = linear_scale(domain, (HEIGHT - BOTTOM, TOP))
    parts = [draw_lines((((LEFT, y(t)), (RIGHT, y(t))) for t in nice_ticks(*domain)), "grid")]
    for x, name in ((LEFT, sides[0]), (RIGHT, sides[1])):
        parts.append(draw_lines([((x, TOP), (x, HEIGHT - BOTTOM))], "zero"))
        parts.append(tag("text", truncate(name, 34), class_="side", x=x, y=TOP - 18, text_anchor="middle"))
    for slopes, weight in ((thin, "thin"), (thick, "thick")):
        for kind in dict.fromkeys(slope.kind for slope in slopes):
            lines = [((LEFT, y(s.before)), (RIGHT, y(s.after))) for s in slopes if s.kind == kind]
            parts.append(draw_lines(lines, f"slope {weight} {kind}"))
    parts += [
        tag("text", f"{100 * t:g} %", class_="tick haloed", x=(LEFT + RIGHT) / 2, y=y(t) + 4, text_anchor="middle")
        for t in nice_ticks(*domain)
    ]
    labeled = [slope for slope in [*thick, *thin] if slope.after_label]
    parts += _place_labels([(y(s.before), s.before_label, s.kind) for s in labeled], LEFT - 10, "end")
    parts += _place_labels([(y(s.after), s.after_label, s.kind) for s in labeled], RIGHT + 10, "start")
    return svg_chart(key, title, description, HEIGHT, *parts)


def _place_labels(labels: list[tuple[float, str, str]], x: float, anchor: str) -> list[Markup]:
    """Place labels beside an axis, pushed down where they overlap and back up at the bottom of the chart."""
    order = sorted((label for label in labels if label[1]), key=lambda label: label[0])
    tops: list[float] = []
    for y, _, _ in order:
        tops.append(max(y, tops[-1] + LINE_HEIGHT) if tops else y)
    limit = HEIGHT - 6
    for i in reversed(range(len(tops))):
        tops[i] = min(tops[i], limit)
        limit = tops[i] - LINE_HEIGHT
    return [
        tag("text", truncate(text, 32), class_=f"end {kind}", x=x, y=top + 4, text_anchor=anchor)
        for top, (_, text, kind) in zip(tops, order, strict=True)
    ]
