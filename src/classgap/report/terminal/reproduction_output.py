"""Terminal output of a recipe: the paper's numbers and ours, side by side."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console

from classgap.report.reproduction_rows import (
    LEGEND,
    MARKS,
    entry_row,
    headers,
    recipe_title,
    reproduction_headline,
    scale_note,
    shared_runs_note,
    unit_note,
)
from classgap.report.terminal.console import (
    plain_text,
    print_page,
    print_title,
    render_text,
    supports_unicode,
)
from classgap.report.terminal.table import new_table
from classgap.reproduce.results import RecipeResult

STYLES = {"reproduced": "blue", "not reproduced": "dark_orange3"}


def print_reproduction(result: RecipeResult, file: TextIO | None = None) -> None:
    """Print the paper's numbers and ours.

    Args:
        result: the result to print.
        file: destination; standard output by default.

    >>> from pathlib import Path
    >>> from classgap.reproduce.catalog import load_recipe
    >>> from classgap.reproduce.cells import make_plan
    >>> from classgap.reproduce.results import collect
    >>> from classgap.reproduce.store import ResultStore
    >>> result = collect(make_plan(load_recipe("mr2-table-12"), "tiny"), ResultStore(Path("no-results")))
    >>> print_reproduction(result)  # doctest: +ELLIPSIS
    MR² (arXiv 2602.00205), Table 12: Mean margin
    ...
    """
    print_page(lambda console: _show(console, result), file)


def reproduction_text(result: RecipeResult) -> str:
    """Return the terminal output as plain text.

    >>> from pathlib import Path
    >>> from classgap.reproduce.catalog import load_recipe
    >>> from classgap.reproduce.cells import make_plan
    >>> from classgap.reproduce.results import collect
    >>> from classgap.reproduce.store import ResultStore
    >>> result = collect(make_plan(load_recipe("mr2-table-12"), "tiny"), ResultStore(Path("no-results")))
    >>> "not run" in reproduction_text(result).lower()
    True
    """
    return render_text(lambda console: _show(console, result))


def _show(console: Console, result: RecipeResult) -> None:
    print_title(console, recipe_title(result.recipe), reproduction_headline(result))
    unicode = supports_unicode()
    if note := scale_note(result):
        console.print(plain_text(note), soft_wrap=True)
        console.print()
    labels = [header[:1].lower() + header[1:] for header in headers(result.recipe)]
    for name, part in result.recipe.parts.items():
        entries = result.part(name)
        if not entries:
            continue
        title = f"({name}) {part.shows}" if len(result.recipe.parts) > 1 else part.shows
        table = new_table(f"{title}; {unit_note(part)}", *labels, text=("column", "verdict"), optional=("p",))
        last = ""
        for entry in entries:
            row, *cells, verdict = entry_row(part, entry)
            shown = MARKS.get(verdict, verdict) if unicode else verdict
            table.add_row(
                plain_text("" if row == last else row),
                *map(plain_text, cells),
                plain_text(shown, STYLES.get(verdict, "")),
            )
            last = row
        console.print(table)
        if shared := shared_runs_note(result, name):
            console.print(plain_text(shared), soft_wrap=True)
        console.print()
    if unicode:
        console.print(plain_text(f"{LEGEND}.", "bright_black"))
    for reason in dict.fromkeys(entry.reason for entry in result.entries if entry.reason):
        console.print(plain_text(f"Cannot be run here: {reason}"), soft_wrap=True)
