"""Error budgets as stacked bars with hatched parts.

Positions along a bar are percentages, so the chart fits any width without shrinking its text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from classgap.audit.results import ErrorBudget
from classgap.report.budget import Segment, segment_sentence, segments
from classgap.report.charts.svg import svg_chart, tag
from classgap.report.formatting import display_width, format_count, pluralize, truncate

NAME_LINE, BAR_HEIGHT, ADDED_LINE, GAP = 19.0, 20.0, 17.0, 12.0
LETTER_WIDTH = 7.6  # approximate
NARROW, WIDE = 300, 580  # smallest widths of a bar, in pixels, without and with the names of the parts on it
NARROW_NAME, WIDE_NAME = 32, 72  # columns of a name on a bar of these widths
COLORS = {"labels": "tone3", "decision": "tone0", "head": "tone2", "representation": "tone1", "unexplained": "tone7"}


@dataclass(frozen=True)
class Bar:
    """The budget of one class, or of all classes if ``index`` is ``None``."""

    name: str
    budget: ErrorBudget
    index: int | None = None


def budget_chart(bars: Sequence[Bar], confidence_level: float) -> Markup:
    """Draw one bar per budget, from top to bottom, below its name and number of errors."""
    top, drawn = 0.0, []
    for bar in bars:
        height = NAME_LINE + BAR_HEIGHT + (ADDED_LINE if _added_line(bar.budget) else 0.0)
        drawn.append(_draw_bar(bar, top, height, confidence_level))
        top += height + GAP
    first = "; ".join(segment_sentence(segment, confidence_level) for segment in segments(bars[0].budget))
    description = f"{bars[0].name}: {first}. The table below lists all values."
    return svg_chart("budget", "Errors by the change that would remove them", description, top, *drawn)


def pattern_definitions() -> Markup:
    """Return the fill patterns of the parts, which differ in shape as well as color.

    They are in an ``svg`` of their own because the legend uses them as well.
    """
    marks = {
        "labels": tag("circle", class_="mark", cx=2, cy=2, r=1.4) + tag("circle", class_="mark", cx=6, cy=6, r=1.4),
        "decision": tag("path", class_="mark", d="M-1 1L1 -1M0 8L8 0M7 9L9 7"),
        "head": tag("path", class_="mark", d="M0 4H8M4 0V8"),
        "representation": tag("rect", class_="solid", width=8, height=8),
        "unexplained": Markup(""),
    }
    patterns = [
        tag(
            "pattern",
            tag("rect", class_="ground", width=8, height=8),
            mark,
            id=f"fill-{part}",
            class_=COLORS[part],
            width=8,
            height=8,
            patternUnits="userSpaceOnUse",
        )
        for part, mark in marks.items()
    ]
    return tag("svg", tag("defs", *patterns), class_="definitions", width=0, height=0, aria_hidden="true")


def swatch(part: str) -> Markup:
    """Return the legend's sample of a part's fill."""
    area = tag("rect", class_=f"part {COLORS[part]}", x=1, y=1, width=24, height=12, fill=f"url(#fill-{part})")
    return tag("svg", area, class_="swatch", width=26, height=14, aria_hidden="true")


def _draw_bar(bar: Bar, top: float, height: float, confidence_level: float) -> Markup:
    found = segments(bar.budget)
    errors = pluralize(bar.budget.errors, "error", "errors")
    sentences = "; ".join(segment_sentence(segment, confidence_level) for segment in found)
    parts = [
        tag("title", f"{bar.name}, {errors}: {sentences}"),
        tag("rect", class_="hit", x=0, y=top - 4, width="100%", height=height + 8),
        *_draw_name(bar.name, top + 13),
        tag("text", errors, class_="value", x="100%", y=top + 13, text_anchor="end"),
    ]
    start = 0.0
    for segment in found:
        if segment.count:
            parts.append(_draw_segment(segment, start, top + NAME_LINE))
        start += segment.fraction
    if added := _added_line(bar.budget):
        parts.append(tag("text", added, class_="added", x=0, y=top + NAME_LINE + BAR_HEIGHT + 14))
    kind = "stack" if bar.index is not None else "stack all"
    return tag("g", *parts, class_=kind, data_class=None if bar.index is None else str(bar.index))


def _draw_name(name: str, y: float) -> list[Markup]:
    """The name, twice if it is too long for a narrow window; the style sheet shows one."""
    if display_width(name) <= NARROW_NAME:
        return [tag("text", name, class_="name", x=0, y=y)]
    sizes = {"narrow": NARROW_NAME, "wide": WIDE_NAME}
    return [tag("text", truncate(name, width), class_=f"name {kind}", x=0, y=y) for kind, width in sizes.items()]


def _draw_segment(segment: Segment, start: float, y: float) -> Markup:
    area = tag(
        "rect",
        class_=f"part {COLORS[segment.part]}",
        x=_percentage(start),
        y=y,
        width=_percentage(segment.fraction),
        height=BAR_HEIGHT,
        fill=f"url(#fill-{segment.part})",
    )
    number = ("≥ " if segment.at_least else "") + format_count(segment.count)
    word = f" {segment.part}"
    if not _fits(number, segment.fraction * WIDE):
        return area
    return area + tag(
        "text",
        number,
        tag("tspan", word, class_="wide") if _fits(number + word, segment.fraction * WIDE) else "",
        class_="count" if _fits(number, segment.fraction * NARROW) else "count wide",
        x=_percentage(start + segment.fraction / 2),
        y=y + BAR_HEIGHT / 2 + 5,
        text_anchor="middle",
    )


def _added_line(budget: ErrorBudget) -> str:
    return " · ".join(f"{segment.part}: {segment.new_errors}" for segment in segments(budget) if segment.added)


def _fits(text: str, width: float) -> bool:
    return display_width(text) * LETTER_WIDTH + 6 <= width


def _percentage(fraction: float) -> str:
    return f"{100 * fraction:.2f}".rstrip("0").rstrip(".") + "%"
