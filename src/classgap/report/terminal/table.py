"""Tables that drop columns instead of cutting numbers where the terminal is narrow."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Column, Table
from rich.text import Text

from classgap.report.terminal.console import plain_text

MIN_NAME_WIDTH = 11  # a name may be truncated to this many columns
COLUMN_GAP = 2


class FittingTable(Table):
    """A table that fits the width of the terminal.

    Text columns shrink first, down to ``MIN_NAME_WIDTH``. If the table is still too wide, it drops the columns named in
    ``optional``, first to last, and then columns from the right, down to two.
    """

    def __init__(self, caption: Text, *columns: Column, optional: tuple[str, ...] = ()) -> None:
        super().__init__(
            *columns, title=caption, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False
        )
        self.caption_text = caption
        self.optional = optional

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the columns that fit."""
        widths = {str(column.header): _min_width(console, column) for column in self.columns}
        for name in [*self.optional, *reversed(list(widths)[1:])]:
            if len(widths) <= 2 or sum(widths.values()) + COLUMN_GAP * len(widths) - 1 <= options.max_width:
                break
            widths.pop(name, None)
        if len(widths) == len(self.columns):
            yield from super().__rich_console__(console, options)
            return
        kept = [column for column in self.columns if column.header in widths]
        smaller = FittingTable(self.caption_text, *(column.copy() for column in kept))
        for row in zip(*(column.cells for column in kept), strict=True):
            smaller.add_row(*row)
        yield smaller


def new_table(caption: str, *columns: str, text: tuple[str, ...] = (), optional: tuple[str, ...] = ()) -> FittingTable:
    """Return an empty table. The first column and those in ``text`` hold text, the others numbers.

    Args:
        caption: title above the table.
        columns: headers.
        text: headers of text columns.
        optional: headers of columns to drop on a narrow terminal, least important first.
    """
    made = []
    for i, column in enumerate(columns):
        is_text = i == 0 or column in text
        made.append(
            Column(column, justify="left" if is_text else "right", no_wrap=not is_text, header_style="bright_black")
        )
    return FittingTable(plain_text(caption, "bold"), *made, optional=optional)


def _min_width(console: Console, column: Column) -> int:
    """Smallest width in which every cell is readable; text that wraps needs its longest word."""
    header = console.measure(column.header)
    width = header.maximum if column.no_wrap else header.minimum
    for cell in column.cells:
        size = console.measure(cell)
        if column.no_wrap:
            width = max(width, size.maximum)
        elif isinstance(cell, Text) and cell.no_wrap:  # a name, which may be truncated
            width = max(width, min(size.maximum, MIN_NAME_WIDTH))
        else:
            width = max(width, size.minimum)
    return width
