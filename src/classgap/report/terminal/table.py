"""Tables that leave out columns where a terminal is too narrow for all of them."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Column, Table
from rich.text import Text

NAME = 11  # columns that a name needs to be told from others; shorter names need no more than they have
BETWEEN = 2  # columns from one column to the next


class FittingTable(Table):
    """A table without lines but under its header, of which no figure is ever cut.

    Columns of text give way first, down to ``NAME``. If that is not enough, the columns named by ``spare`` are left
    out, first to last, and after them the others from the right, down to the first two.
    """

    def __init__(self, caption: Text, *columns: Column, spare: tuple[str, ...] = ()) -> None:
        super().__init__(
            *columns, title=caption, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False
        )
        self.caption_text = caption
        self.spare = spare

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw what there is room for."""
        needed = {str(column.header): _needed(console, column) for column in self.columns}
        for name in [*self.spare, *reversed(list(needed)[1:])]:
            if len(needed) <= 2 or sum(needed.values()) + BETWEEN * len(needed) - 1 <= options.max_width:
                break
            needed.pop(name, None)
        if len(needed) == len(self.columns):
            yield from super().__rich_console__(console, options)
            return
        kept = [column for column in self.columns if column.header in needed]
        smaller = FittingTable(self.caption_text, *(column.copy() for column in kept))
        for row in zip(*(column.cells for column in kept), strict=True):
            smaller.add_row(*row)
        yield smaller


def _needed(console: Console, column: Column) -> int:
    """The fewest columns in which every cell can be read; a text that wraps needs its longest word."""
    widest = console.measure(column.header)
    room = widest.maximum if column.no_wrap else widest.minimum
    for cell in column.cells:
        size = console.measure(cell)
        if column.no_wrap:
            room = max(room, size.maximum)
        elif isinstance(cell, Text) and cell.no_wrap:  # a name, which can be cut
            room = max(room, min(size.maximum, NAME))
        else:
            room = max(room, size.minimum)
    return room
