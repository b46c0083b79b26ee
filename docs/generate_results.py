"""Generate docs/results.md from the stored results: ``python docs/generate_results.py [FILE]``, or ``make docs``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from classgap._atomic_write import atomic_write_text
from classgap.report.reproduction_files import escape_markdown, markdown_table, reproduction_markdown
from classgap.report.reproduction_rows import LEGEND, recipe_title
from classgap.reproduce.catalog import load_recipe, recipe_names
from classgap.reproduce.cells import make_plan
from classgap.reproduce.results import RecipeResult, best_scale, collect, requirements
from classgap.reproduce.schema import SCALES
from classgap.reproduce.store import ResultStore

ROOT = Path(__file__).parents[1]
MAX_SEEDS = 10
ORDER = ("reproduced", "same direction", "not reproduced", "smoke", "no claim", "cannot be run here", "not run")

INTRODUCTION = f"""\
# Results

The tables and figures of the three papers, next to our runs. `make docs` generates this page from
[results/](../results), which holds the settings, code version, environment and metrics of every run;
`classgap reproduce NAME` repeats a recipe. [Reproducing the papers](reproduce.md) explains scales, verdicts and the
store.
{LEGEND}.
"""


def find_results(store: ResultStore) -> list[RecipeResult]:
    """Return the result of each recipe at the largest scale that has runs, or at the full scale if none has."""
    found = []
    for name in recipe_names():
        recipe = load_recipe(name)
        scales = [scale for scale in SCALES if scale != "full-200" or scale in recipe.scales]
        results = [collect(make_plan(recipe, scale, MAX_SEEDS), store) for scale in scales]
        settings_only = all(part.unit == "setting" for part in recipe.parts.values())  # nothing is trained
        found.append(results[-1] if settings_only else best_scale(results) or results[-1])
    return found


def generate(store: ResultStore) -> str:
    """Return the page."""
    results = find_results(store)
    lines = [INTRODUCTION, "## At a glance", "", *_glance(results), ""]
    for result in results:
        recipe = result.recipe
        lines += [f"## {recipe.name}", "", f"{escape_markdown(recipe_title(recipe))}.", ""]
        if result.n_runs:
            command = f"classgap reproduce {recipe.name} --scale {result.scale} --seeds {result.seeds}"
            lines += ["```bash", command, "```", ""]
        elif required := requirements(recipe):
            lines += [f"The full scale cannot be run here: it needs {escape_markdown(required)}.", ""]
        lines += [reproduction_markdown(result, legend=False)]
    return "\n".join(lines).rstrip() + "\n"


def _glance(results: Sequence[RecipeResult]) -> list[str]:
    """One line per verdict with the recipes that have it, and the reasons of those that were not run."""
    by_verdict: dict[str, list[str]] = {}
    for result in results:
        name = result.recipe.name
        shown = f" ({result.scale}, n = {result.seeds})" if result.n_runs else ""
        by_verdict.setdefault(result.verdict, []).append(f"[{name}](#{name}){shown}")
    rows = [
        (verdict, str(len(by_verdict[verdict])), ", ".join(by_verdict[verdict]))
        for verdict in ORDER
        if verdict in by_verdict
    ]
    table = ["| verdict | recipes | |", "|---|---|---|", *("| " + " | ".join(row) + " |" for row in rows)]
    needed: dict[str, list[str]] = {}
    for result in results:
        if required := requirements(result.recipe):
            needed.setdefault(required, []).append(result.recipe.name)
    why = markdown_table(
        ["the full scale needs", "recipes"], [(required, ", ".join(names)) for required, names in needed.items()]
    )
    text = "Full scales that could not be run, and why. All other full scales need days on a CPU."
    return [*table, "", text, "", *why]


def main() -> None:
    """Write the page."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("results.md")
    atomic_write_text(path, generate(ResultStore(ROOT / "results")))


if __name__ == "__main__":
    main()
