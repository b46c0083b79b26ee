"""A recipe's result as Markdown and CSV."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence

from classgap._atomic_write import atomic_write_text
from classgap._csv_cells import escape_cell
from classgap.report.formatting import escape_markdown
from classgap.report.reproduction_rows import (
    LEGEND,
    part_table,
    recipe_title,
    reproduction_headline,
    scale_note,
    shared_runs_note,
    unit_note,
)
from classgap.reproduce.results import RecipeResult

CSV_COLUMNS = (
    "recipe",
    "scale",
    "part",
    "row",
    "column",
    "paper",
    "paper_change",
    "n",
    "mean",
    "deviation",
    "change",
    "change_low",
    "change_high",
    "p_value",
    "verdict",
    "reason",
    "runs",
)


def write_reproduction_markdown(result: RecipeResult, path: str | os.PathLike[str]) -> None:
    """Write the result as a Markdown page, atomically."""
    atomic_write_text(path, f"# {escape_markdown(recipe_title(result.recipe))}\n\n{reproduction_markdown(result)}")


def reproduction_markdown(result: RecipeResult, *, legend: bool = True) -> str:
    """Return verdict, tables and oddities as Markdown, without a heading.

    Args:
        result: the result to write.
        legend: whether to explain the marks.
    """
    lines = [f"**{escape_markdown(reproduction_headline(result))}.**{f' {LEGEND}.' if legend else ''}", ""]
    if note := scale_note(result):
        lines += [escape_markdown(note), ""]
    if result.recipe.note:
        lines += [result.recipe.note, ""]
    for name, part in result.recipe.parts.items():
        entries = result.part(name)
        if entries:
            title = f"({name}) {part.shows}" if len(result.recipe.parts) > 1 else part.shows
            note = f"{unit_note(part)}; paper → ours" if result.n_runs else "numbers of the paper"
            lines += [f"{escape_markdown(title)} ({note})", ""]
            lines += [*markdown_table(*part_table(part, entries)), ""]
            if shared := shared_runs_note(result, name):
                lines += [escape_markdown(shared), ""]
    for reason in dict.fromkeys(entry.reason for entry in result.entries if entry.reason):
        lines += [f"Cannot be run here: {escape_markdown(reason)}", ""]
    if result.recipe.oddities:
        lines += [
            "Contradictions in the paper:",
            "",
            *(f"- {escape_markdown(each)}" for each in result.recipe.oddities),
        ]
        lines.append("")
    return "\n".join(lines)


def write_reproduction_csv(results: Sequence[RecipeResult], path: str | os.PathLike[str]) -> None:
    """Write one line per number, with the keys of its runs in the store, atomically."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(CSV_COLUMNS)
    for result in results:
        for entry in result.entries:
            found = entry.comparison
            change = () if found is None else (found.mean, found.low, found.high, found.p_value)
            numbers = [entry.paper_change, len(entry.values), entry.mean, entry.deviation, *(change or (None,) * 4)]
            labels = [result.recipe.name, result.scale, entry.part, entry.row, entry.column, _plain(entry.paper)]
            cells = [*labels, *map(_plain, numbers), entry.verdict, entry.reason, " ".join(entry.keys)]
            table.writerow(map(escape_cell, cells))
    atomic_write_text(path, text.getvalue())


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table with escaped cells."""
    body = ["| " + " | ".join(map(escape_markdown, row)) + " |" for row in rows]
    return ["| " + " | ".join(map(escape_markdown, header)) + " |", "|---" * len(header) + "|", *body]


def _plain(value: float | str | None) -> str:
    if value is None or value != value:  # NaN
        return ""
    return value if isinstance(value, str) else f"{value:.6g}"
