"""Distinct claims: which numbers of the tables and figures rest on the same runs.

The papers show some results in several tables, and a small scale has one run in place of several networks or data sets
of a paper. Two numbers are the same claim if they have the same runs, the same runs of the baseline, and the same
metric. Such a claim counts once, with the least favorable of its verdicts: the papers' numbers can differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from classgap.reproduce.results import EntryResult, RecipeResult, is_claim
from classgap.reproduce.verdicts import JUDGED, Verdict


@dataclass(frozen=True)
class Claim:
    """A claim of the papers, with all numbers that state it.

    Attributes:
        verdict: Verdict; the least favorable one of its entries.
        entries: Names of the recipes and the entries, in the order of the recipes.
    """

    verdict: Verdict
    entries: tuple[tuple[str, EntryResult], ...]


def claims_of(result: RecipeResult) -> list[EntryResult]:
    """Return the entries that decide the verdict of a recipe."""
    return [entry for entry in result.entries if is_claim(result.recipe.parts[entry.part], entry)]


def distinct_claims(results: Iterable[RecipeResult]) -> list[Claim]:
    """Return the judged claims of some recipes, each once."""
    groups: dict[tuple[tuple[str, ...], ...], list[tuple[str, EntryResult]]] = {}
    for result in results:
        for entry in claims_of(result):
            if entry.verdict in JUDGED:
                groups.setdefault(entry.evidence, []).append((result.recipe.name, entry))
    return [
        Claim(min((entry.verdict for _, entry in group), key=JUDGED.index), tuple(group)) for group in groups.values()
    ]


def rows_that_share_runs(entries: Sequence[EntryResult]) -> list[list[str]]:
    """Return groups of rows that show the same numbers of the same runs in every column that they share.

    Args:
        entries: Entries of one part.
    """
    rows: dict[str, dict[str, tuple[tuple[str, ...], ...]]] = {}
    for entry in entries:
        if entry.values and entry.evidence:
            rows.setdefault(entry.row, {})[entry.column] = (entry.evidence[0], entry.evidence[2][:2])
    groups: dict[tuple[tuple[str, tuple[tuple[str, ...], ...]], ...], list[str]] = {}
    for row, found in rows.items():
        groups.setdefault(tuple(found.items()), []).append(row)
    return [names for names in groups.values() if len(names) > 1]
