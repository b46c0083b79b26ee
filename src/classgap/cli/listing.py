"""Lists of registry entries, and the options of one entry, for a terminal."""

from __future__ import annotations

import shutil
import textwrap
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any, Literal, get_args, get_origin

from classgap.registry import Entry

MAX_NAME_WIDTH = 28  # of the column of names; a longer name would take the room of the descriptions


def terminal_width() -> int:
    """Return the width of the terminal, at most 80 columns."""
    return min(80, shutil.get_terminal_size().columns)


def print_names(rows: Iterable[tuple[str, str]], width: int) -> None:
    """Print one line per name, with its description cut to the terminal's width.

    Args:
        rows: Names and descriptions.
        width: Width of the column of names.

    >>> print_names([("erm", "Cross-entropy."), ("post-hoc", "Subtracts log class priors.")], 8)
      erm       Cross-entropy.
      post-hoc  Subtracts log class priors.
    """
    for name, text in rows:
        start = f"  {name:<{min(width, MAX_NAME_WIDTH)}}  "
        print(start + textwrap.shorten(text, terminal_width() - len(start), placeholder=" …"))


def print_entries(entries: Collection[Entry[Any]], width: int | None = None) -> None:
    """Print one line per entry: name and summary; ``width`` aligns several lists."""
    print_names(((_label(entry), entry.summary) for entry in entries), width or name_width(entries))


def name_width(entries: Iterable[Entry[Any]]) -> int:
    """Return the length of the longest name."""
    return max(len(_label(entry)) for entry in entries)


def _label(entry: Entry[Any]) -> str:
    return entry.usage + ("*" if entry.extra else "")


def print_extras(entries: Collection[Entry[Any]]) -> None:
    """Print the installation commands for entries that are marked with an asterisk; most need the first one."""
    counts = Counter(entry.extra for entry in entries if entry.extra)
    for place, (extra, _) in enumerate(counts.most_common()):
        only = f" ({', '.join(entry.name for entry in entries if entry.extra == extra)})" if place else ""
        print(f"* requires pip install 'classgap[{extra}]'{only}")


def print_option(name: str, kind: Any, default: Any, *notes: str) -> None:
    """Print an option with its type and default, and notes below it.

    >>> print_option("memory_size", int | None, None, "Number of features.")
      memory-size=none  (int)
          Number of features.
    """
    print(f"  {name.replace('_', '-')}={_format_value(default)}  ({_format_type(kind)})")
    for note in filter(None, notes):
        print_paragraph(note, indent=6)


def print_paragraph(text: str, indent: int = 0, hanging: int = 0) -> None:
    """Print a text wrapped to the terminal's width; ``hanging`` indents all lines but the first further."""
    first, rest = " " * indent, " " * (indent + hanging)
    lines = textwrap.wrap(text, terminal_width(), initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
    print("\n".join(lines))


def _format_value(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _format_type(kind: Any) -> str:
    """Name the types that can be typed on a command line; tensors and sequences cannot.

    >>> _format_type(Literal["pad", "projection"]), _format_type(float | None)
    ('pad or projection', 'float')
    """
    if get_origin(kind) is Literal:
        return " or ".join(map(str, get_args(kind)))
    names = {bool: "yes or no", int: "int", float: "float", str: "str"}
    return " or ".join(names[member] for member in get_args(kind) or (kind,) if member in names)
