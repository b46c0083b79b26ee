"""Console, escaped text and interval bars."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import TextIO

from rich.console import Console
from rich.text import Text

from classgap.audit.results import Interval
from classgap.report.formatting import printable

MAX_WIDTH = 80
BAR_WIDTH = 22
STYLES = {
    "easy": "blue",
    "medium": "bright_black",
    "hard": "dark_orange3",
    "gained": "blue",
    "regressed": "dark_orange3",
}


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # for the caller to handle; rich would exit the process


def print_page(show: Callable[[Console], None], file: TextIO | None = None) -> None:
    """Print the output of ``show``, at most 80 columns wide; without trailing spaces if it does not go to a terminal.

    Args:
        show: prints to the console that it is given.
        file: destination; standard output by default.
    """
    console = _Console(file=file, highlight=False, soft_wrap=False)
    console.width = min(MAX_WIDTH, console.width)
    if console.is_terminal or console.is_jupyter:
        show(console)
        return
    with console.capture() as captured:
        show(console)
    console.file.write(_strip_lines(captured.get()) + "\n")
    console.file.flush()


def render_text(show: Callable[[Console], None]) -> str:
    """Return the output of ``show`` as 80 columns of text without control sequences."""
    text = io.StringIO()
    show(
        Console(
            file=text, width=MAX_WIDTH, color_system=None, force_terminal=False, force_jupyter=False, highlight=False
        )
    )
    return _strip_lines(text.getvalue())


def print_title(console: Console, title: str, headline: str) -> None:
    """Print the title and the headline."""
    console.print(plain_text(title, "bright_black"))
    console.print(plain_text(headline, "bold"))
    console.print()


def plain_text(text: str, style: str = "") -> Text:
    """Return ``text`` without interpreting markup or control characters in it."""
    return Text(printable(text), style=style)


def name_cell(text: str, style: str = "") -> Text:
    """Return a table cell that stays on one line and is truncated if necessary."""
    cell = plain_text(text, style)
    cell.no_wrap, cell.overflow = True, "ellipsis"
    return cell


def interval_bar(
    value: float,
    interval: Interval | None,
    kind: str = "",
    domain: tuple[float, float] = (0, 1),
    width: int = BAR_WIDTH,
) -> Text:
    """Draw an interval with a dot at the value.

    >>> interval_bar(0.5, Interval(0.25, 0.75)).plain
    '·····━━━━━●━━━━━━·····'
    """
    dot, line, empty = ("●", "━", "·") if supports_unicode() else ("o", "=", ".")
    low, high = interval if interval is not None else (value, value)
    scale = (width - 1) / ((domain[1] - domain[0]) or 1.0)
    first, at, last = (round(min(max(v - domain[0], 0) * scale, width - 1)) for v in (low, value, high))
    bar = Text()
    for i in range(width):
        inside = first <= i <= last
        letter = dot if i == at else line if inside else empty
        bar.append(letter, STYLES.get(kind, "") if inside else "bright_black")
    return bar


def _strip_lines(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines())


def supports_unicode() -> bool:
    """Return whether standard output can encode the characters of bars and lines."""
    try:
        "●━·".encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True
