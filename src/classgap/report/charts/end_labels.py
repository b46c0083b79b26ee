"""Labels at the ends of lines, moved apart where they would overlap."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from classgap.report.charts.svg import tag


def place_end_labels(
    labels: Sequence[tuple[float, str, str]],
    x: float,
    lowest: float,
    *,
    anchor: str = "start",
    line_height: float = 15.0,
) -> list[Markup]:
    """Place labels below each other, pushed down where they overlap and back up where they would end too low.

    Args:
        labels: height of the end, text and CSS class of each line.
        x: horizontal position.
        lowest: height that no label may be below.
        anchor: which end of the texts is at ``x``.
        line_height: smallest distance between two labels.
    """
    ordered = sorted(labels, key=lambda label: label[0])
    heights: list[float] = []
    for y, _, _ in ordered:
        heights.append(max(y, heights[-1] + line_height) if heights else y)
    limit = lowest
    for i in reversed(range(len(heights))):
        heights[i] = min(heights[i], limit)
        limit = heights[i] - line_height
    return [
        tag("text", text, class_=f"end {kind}", x=x, y=height + 4, text_anchor=anchor)
        for height, (_, text, kind) in zip(heights, ordered, strict=True)
    ]
