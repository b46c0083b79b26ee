"""Template variables of the page of a recipe."""

from __future__ import annotations

from typing import Any

from classgap.report.charts.reproduction_charts import reproduction_charts
from classgap.report.reproduction_rows import (
    entry_row,
    headers,
    recipe_title,
    reproduction_headline,
    scale_note,
    shared_runs_note,
    unit_note,
)
from classgap.reproduce.catalog import find_base
from classgap.reproduce.results import RecipeResult, requirements

RULES = {
    "differences": (
        "Smaller scales use other data, networks and epochs than the paper. Verdicts therefore compare differences "
        "from the baseline with the same seed, not accuracies."
    ),
    "reproduced": (
        "Several seeds, the same direction as in the paper, and p < 0.05 in a two-sided paired t-test. At a full "
        "scale, the difference must also be at least half of the paper's."
    ),
    "not_testable": (
        "The runs of both sides are identical, or both accuracies are 100.0 %, or both are 0.0 %. Decides nothing."
    ),
    "same_direction": "The same direction, but another condition fails. The best verdict for a single seed.",
    "no_difference": (
        "If the paper's difference is at most 0.3 points, the 95 % interval of ours must lie within ±1 point."
    ),
}


def reproduction_page(result: RecipeResult) -> dict[str, Any]:
    """Return the variables of ``reproduction.html``."""
    recipe = result.recipe
    parts = [
        {
            "key": name,
            "title": f"({name}) {part.shows}" if len(recipe.parts) > 1 else part.shows,
            "note": unit_note(part),
            "charts": reproduction_charts(result, name),
            "shows_paper": any(isinstance(each.paper, float) for each in result.part(name)),
            "shared_runs": shared_runs_note(result, name),
            "rows": [entry_row(part, entry) for entry in result.part(name)],
        }
        for name, part in recipe.parts.items()
        if result.part(name) or part.plot is not None
    ]
    base = find_base(recipe.base)
    return {
        "title": recipe_title(recipe),
        "headline": reproduction_headline(result),
        "result": result,
        "parts_shown": parts,
        "headers": headers(recipe),
        "scale_note": scale_note(result),
        "settings": {**base.settings, **recipe.settings},
        "assumed": {**base.assumed, **recipe.assumed},
        "needs": requirements(recipe),
        "reasons": list(dict.fromkeys(entry.reason for entry in result.entries if entry.reason)),
        "runs": sorted({key for entry in result.entries for key in entry.keys}),
        "rules": RULES,
        "data_sets": [],
    }
