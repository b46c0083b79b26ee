"""A scatter plot in characters."""

from __future__ import annotations

from collections.abc import Sequence

from classgap.report.formatting import format_points
from classgap.report.terminal.console import supports_unicode

HEIGHT = 9
MIN_SPAN = 0.002  # of an axis, so that rounding noise does not fill the picture

Mark = tuple[float, float, str]  # x, y, letter


def scatter(marks: Sequence[Mark], x_label: str, y_label: str, x_limit: float | None, width: int) -> list[str]:
    """Return the lines of a picture with lines through 0 and, if given, a vertical line at a limit.

    Args:
        marks: points with one letter each; of several at one place, the first is shown.
        x_label: name of the horizontal axis.
        y_label: name of the vertical axis.
        x_limit: position of the vertical line.
        width: number of columns of the picture, with its labels.
    """
    across, down, corner, limit_line = ("─", "│", "┼", "┊") if supports_unicode() else ("-", "|", "+", ":")
    xs = [0.0, *(x for x, _, _ in marks), *([] if x_limit is None else [x_limit])]
    ys = [0.0, *(y for _, y, _ in marks)]
    low_x, high_x = _padded(xs)
    low_y, high_y = _padded(ys)
    ticks = {y: format_points(y) for y in (max(ys), 0.0, min(ys))}
    margin = max(len(text) for text in ticks.values()) + 2
    columns = width - margin

    def column(x: float) -> int:
        return round((x - low_x) / (high_x - low_x) * (columns - 1))

    def row(y: float) -> int:
        return round((high_y - y) / (high_y - low_y) * (HEIGHT - 1))

    cells = [[" "] * columns for _ in range(HEIGHT)]
    for line in cells:
        line[column(0)] = down
        if x_limit is not None:
            line[column(x_limit)] = limit_line
    cells[row(0)] = [across if cell == " " else corner for cell in cells[row(0)]]
    for x, y, letter in reversed(marks):
        cells[row(y)][column(x)] = letter
    labels = [""] * HEIGHT
    for y, text in ticks.items():
        labels[row(y)] = labels[row(y)] or text
    lines = [f"{label:>{margin - 1}} {''.join(line)}".rstrip() for label, line in zip(labels, cells, strict=True)]
    return [
        y_label,
        *lines,
        " " * margin + _x_axis({column(x): format_points(x) for x in sorted(xs)}, columns, x_label),
    ]


def _padded(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    pad = max(0.04 * (high - low), MIN_SPAN / 2)
    return low - pad, high + pad


def _x_axis(ticks: dict[int, str], columns: int, label: str) -> str:
    """Write the ticks that fit, the outer ones first, and the name of the axis after them."""
    cells = [" "] * (columns + len(label) + 2)
    places = sorted(ticks)
    for place in dict.fromkeys([places[0], places[-1], *places]):
        text = ticks[place]
        start = min(max(place - len(text) // 2, 0), columns - len(text))
        if all(cell == " " for cell in cells[max(start - 1, 0) : start + len(text) + 1]):
            cells[start : start + len(text)] = text
    return f"{''.join(cells).rstrip()}  {label}"
