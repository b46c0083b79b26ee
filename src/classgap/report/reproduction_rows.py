"""Results of a recipe as text: headline, one row per number, and one table per part."""

from __future__ import annotations

import math

from classgap.report.causes import join_names
from classgap.report.formatting import MISSING, format_p_value, pluralize
from classgap.reproduce.claims import claims_of, rows_that_share_runs
from classgap.reproduce.results import EntryResult, RecipeResult, stand_ins
from classgap.reproduce.schema import PAPERS, Part, Recipe

_HEADERS = ("Row", "Column", "Paper", "Ours", "Paper Δ", "Our Δ", "p", "Verdict")
MARKS = {
    "reproduced": "✓",
    "same direction": "≈",
    "not reproduced": "✗",
    "not testable": "=",
    "smoke": "smoke",
    "cannot be run here": "cannot run",
    "not run": "not run",
}
LEGEND = (
    "✓ reproduced, ≈ same direction, ✗ not reproduced, by a paired t-test of the differences from the baseline; "
    "= not testable (identical runs, or both sides at 100.0 % or at 0.0 %)"
)
SMOKE_TEST = "The scale tiny is a smoke test: its runs are too short to judge a method. Use --scale cpu for that."
_COUNTED = ("reproduced", "same direction", "not reproduced", "not testable", "smoke", "cannot be run here", "not run")


def recipe_title(recipe: Recipe) -> str:
    """Return the paper, the item and the title of a recipe; only the title of a recipe of our own."""
    if recipe.paper == "classgap":
        return recipe.title
    return f"{PAPERS[recipe.paper]}, {recipe.item}: {recipe.title}"


def headers(recipe: Recipe) -> tuple[str, ...]:
    """Return the headers of one row per number; a recipe of our own has expectations in place of a paper's numbers."""
    return tuple(each.replace("Paper", "Expected") if recipe.paper == "classgap" else each for each in _HEADERS)


def reproduction_headline(result: RecipeResult) -> str:
    """Return the verdict with scale, seeds and counts."""
    if not result.entries:
        return "Plots functions; nothing is trained"
    if all(part.unit == "setting" for part in result.recipe.parts.values()):
        known = [entry for entry in result.entries if entry.paper is not None]
        return f"{result.count('reproduced')} of {len(known)} settings are those of the paper; nothing is trained"
    if result.verdict == "not run":
        return "Not run"
    seeds = seeds_text(result)
    done, total = result.coverage
    part = f", {done} of {total} numbers" if 0 < done < total else ""
    claims = claims_of(result)
    others = [entry for entry in result.entries if entry not in claims]
    counts = [_counts(claims, "claim", "claims"), _counts(others, "other number", "other numbers")]
    shown = "; ".join(filter(None, counts)) or "Nothing to compare"
    return f"{result.verdict.capitalize()} (scale {result.scale}, {seeds}{part}). {shown}"


def scale_note(result: RecipeResult) -> str:
    """Return what to know of the scale: that tiny is a smoke test, or what replaces the paper's data and networks."""
    notes = [SMOKE_TEST] if result.scale == "tiny" and result.n_runs else []
    if stand_in := stand_in_note(result):
        notes.append(f"This scale uses {stand_in}.")
    return " ".join(notes)


def shared_runs_note(result: RecipeResult, name: str) -> str:
    """Return which rows of a part show the same runs, because the scale has one network or dataset for several."""
    groups = rows_that_share_runs(result.part(name)) if result.n_runs else []
    if not groups:
        return ""
    return f"These rows show the same runs: {'; '.join(join_names(each) for each in groups)}."


def seeds_text(result: RecipeResult) -> str:
    """Return the number of seeds, or its range if entries differ in it."""
    low, high = result.seed_range
    return pluralize(high, "seed", "seeds") if low == high else f"{low} to {high} seeds"


def stand_in_note(result: RecipeResult) -> str:
    """Return what replaces the paper's data and networks at this scale; empty if nothing does."""
    if not result.n_runs or result.recipe.paper == "classgap":
        return ""
    found: dict[str, list[str]] = {}
    for ours, papers in stand_ins(result.recipe, result.scale):
        found.setdefault(ours, []).append(papers)
    return "; ".join(f"{ours} instead of {' and '.join(papers)}" for ours, papers in found.items())


def _counts(entries: list[EntryResult], one: str, several: str) -> str:
    verdicts = [entry.verdict for entry in entries if entry.verdict in _COUNTED]
    counts = [f"{verdicts.count(each)} {each}" for each in _COUNTED if each in verdicts]
    return f"{pluralize(len(verdicts), one, several)}: {', '.join(counts)}" if counts else ""


def unit_note(part: Part) -> str:
    """Return the unit of a part and its statistic."""
    units = {"percent": "percent", "fraction": "fractions", "number": "numbers", "degrees": "degrees"}
    statistic = "standard deviation over seeds" if part.statistic == "deviation" else "mean ± standard deviation (n)"
    return "settings" if part.unit == "setting" else f"{units[part.unit]}; ours: {statistic}"


def entry_row(part: Part, entry: EntryResult) -> tuple[str, ...]:
    """Return the cells of one number, in the order of :func:`headers`."""
    change, p_value = MISSING, ""
    if entry.comparison is not None:
        change = format_change(part, entry.comparison.mean)
        p_value = "" if math.isnan(entry.comparison.p_value) else format_p_value(entry.comparison.p_value)
    return (
        entry.row,
        entry.column,
        format_paper(part, entry),
        format_ours(part, entry),
        MISSING if entry.paper_change is None else format_change(part, entry.paper_change),
        change,
        p_value,
        entry.verdict,
    )


def part_table(part: Part, entries: list[EntryResult]) -> tuple[list[str], list[list[str]]]:
    """Return header and rows in the shape of the paper's table, each cell with the paper's number and ours."""
    by_label = {(entry.row, entry.column): entry for entry in entries}
    columns = [each for each in part.columns if any(column == each for _, column in by_label)]
    rows = [each for each in part.rows if any(row == each for row, _ in by_label)]
    return ["", *columns], [[row, *(_cell(part, by_label.get((row, column))) for column in columns)] for row in rows]


def format_paper(part: Part, entry: EntryResult) -> str:
    """Format the paper's number as printed."""
    if entry.paper is None:
        return MISSING
    if isinstance(entry.paper, str):
        return entry.paper
    if part.unit == "setting":
        return f"{entry.paper:g}"
    return f"{entry.paper:.{_decimals(part)}f}".replace("-", "−")


def format_ours(part: Part, entry: EntryResult) -> str:
    """Format mean ± standard deviation (n), or the deviation alone where the paper has deviations."""
    if not entry.values or entry.mean is None:
        return MISSING
    if part.unit == "setting":
        return f"{entry.mean:g}"
    if part.statistic == "deviation":
        shown = MISSING if entry.deviation is None else _number(part, entry.deviation)
        return f"{shown} ({len(entry.values)})"
    spread = "" if entry.deviation is None else f" ± {_number(part, entry.deviation)}"
    return f"{_number(part, entry.mean)}{spread} ({len(entry.values)})"


def format_change(part: Part, change: float) -> str:
    """Format a difference to the baseline with its sign."""
    if math.isnan(change):
        return "diverged"
    if math.isinf(change):
        return "higher" if change > 0 else "lower"
    text = _number(part, abs(change))
    return text if not text.strip("0.") else f"{'+' if change > 0 else '−'}{text}"


def _decimals(part: Part) -> int:
    """Return the decimals of the paper's numbers."""
    numbers = [f"{value:g}" for values in part.values.values() for value in values if isinstance(value, float)]
    return max((len(text.partition(".")[2]) for text in numbers if "e" not in text), default=0)


def _number(part: Part, value: float) -> str:
    if part.unit in ("percent", "degrees"):
        return f"{value:.1f}".replace("-", "−")
    return f"{value:.3g}".replace("-", "−")


def _cell(part: Part, entry: EntryResult | None) -> str:
    if entry is None:
        return ""
    mark = "" if entry.verdict == "not run" else MARKS.get(entry.verdict, "")
    shown = f"{format_paper(part, entry)} → {format_ours(part, entry)}" if entry.values else format_paper(part, entry)
    return f"{shown} {mark}".strip()
