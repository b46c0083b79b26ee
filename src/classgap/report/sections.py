"""A section of a report as sentences and tables, shared by the HTML page and the terminal."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SectionTable:
    """A table of formatted cells.

    Attributes:
        caption: title.
        headers: header of each column.
        rows: cells.
        text_columns: positions of columns that hold text; the first one always does.
        classes: whether the first column names classes.
        optional: headers of columns that a narrow terminal drops first.
    """

    caption: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    text_columns: tuple[int, ...] = ()
    classes: bool = False
    optional: tuple[str, ...] = ()


@dataclass(frozen=True)
class Section:
    """A section.

    Attributes:
        key: anchor on the page.
        title: heading.
        intro: how to read the tables, for the page.
        sentences: findings, most important first.
        tables: tables with at least one row.
    """

    key: str
    title: str
    intro: str
    sentences: tuple[str, ...]
    tables: tuple[SectionTable, ...]
