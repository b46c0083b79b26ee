"""A slope chart: accuracy before on the left, after on the right, one line per class and thick lines for groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from classgap.report.charts.end_labels import place_end_labels
from classgap.report.charts.svg import Layout, Scale, draw_both, draw_lines, linear_scale, nice_ticks, svg_chart, tag
from classgap.report.formatting import format_percent, truncate

TOP, BOTTOM = 40.0, 16.0
HEIGHT = 520.0
NAME_WIDTH = 23  # columns of a label's name
LINE_HEIGHT = 14.0  # smallest distance between two labels


@dataclass(frozen=True)
class Slope:
    """One line: accuracy before and after, CSS class, and the name at its ends."""

    before: float
    after: float
    kind: str
    name: str = ""


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
    y, ticks = linear_scale(domain, (HEIGHT - BOTTOM, TOP)), nice_ticks(*domain)

    def draw(layout: Layout) -> Markup:
        parts = _draw_slopes(thin, thick, sides, y, ticks, layout)
        return svg_chart(key, title, description, HEIGHT, *parts, layout=layout)

    return draw_both(draw)


def _draw_slopes(
    thin: Sequence[Slope], thick: Sequence[Slope], sides: tuple[str, str], y: Scale, ticks: list[float], layout: Layout
) -> list[Markup]:
    # A narrow window has room for names on one side only.
    left, right = (54.0, layout.width - 186.0) if layout.narrow else (250.0, layout.width - 250.0)
    parts = [draw_lines((((left, y(t)), (right, y(t))) for t in ticks), "grid")]
    ends = ((left, 0.0, "start"), (right, layout.width, "end"))
    for (x, edge, anchor), name in zip(ends, sides, strict=True):
        parts.append(draw_lines([((x, TOP), (x, HEIGHT - BOTTOM))], "zero"))
        at, side = (edge, anchor) if layout.narrow else (x, "middle")
        text = truncate(name, 24 if layout.narrow else 34)
        parts.append(tag("text", text, class_="side", x=at, y=TOP - 18, text_anchor=side))
    for slopes, weight in ((thin, "thin"), (thick, "thick")):
        for kind in dict.fromkeys(slope.kind for slope in slopes):
            lines = [((left, y(s.before)), (right, y(s.after))) for s in slopes if s.kind == kind]
            parts.append(draw_lines(lines, f"slope {weight} {kind}"))
    parts += [
        tag("text", f"{100 * t:g} %", class_="tick haloed", x=(left + right) / 2, y=y(t) + 4, text_anchor="middle")
        for t in ticks
    ]
    labels = [(s, truncate(s.name, 15 if layout.narrow else NAME_WIDTH)) for s in [*thick, *thin] if s.name]
    before = [
        (y(s.before), f"{'' if layout.narrow else name} {format_percent(s.before)}".strip(), s.kind)
        for s, name in labels
    ]
    after = [(y(s.after), f"{format_percent(s.after)} {name}".strip(), s.kind) for s, name in labels]
    parts += place_end_labels(before, left - 10, HEIGHT - 6, anchor="end", line_height=LINE_HEIGHT)
    parts += place_end_labels(after, right + 10, HEIGHT - 6, line_height=LINE_HEIGHT)
    return parts
