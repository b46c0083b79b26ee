"""A legend inside a chart: samples of lines or marks with their names, wrapped to the width of the plot."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from markupsafe import Markup

from classgap.report.charts.svg import tag
from classgap.report.formatting import display_width, truncate

ROW_HEIGHT = 20.0
LETTER_WIDTH = 8.2  # approximate
SAMPLE_WIDTH = 30.0
NAME_WIDTH = 40  # columns

Sample = Callable[[float, float], Markup]  # draws a sample of SAMPLE_WIDTH at the left end and middle of a row


def draw_legend(items: Sequence[tuple[str, Sample]], left: float, right: float) -> tuple[list[Markup], float]:
    """Place names and samples from left to right, in as many rows as needed; return the drawing and its height."""
    parts: list[Markup] = []
    x, row = left, 0
    for name, sample in items:
        text = truncate(name, NAME_WIDTH)
        width = SAMPLE_WIDTH + 6 + LETTER_WIDTH * display_width(text)
        if x > left and x + width > right:
            x, row = left, row + 1
        y = 12 + ROW_HEIGHT * row
        parts += [sample(x, y), tag("text", text, class_="name", x=x + SAMPLE_WIDTH + 6, y=y + 4.5)]
        x += width + 22
    return parts, ROW_HEIGHT * (row + 1) + 8 if items else 0.0
