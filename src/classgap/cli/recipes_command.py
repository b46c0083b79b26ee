"""``classgap recipes``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from classgap.cli.listing import print_names, print_paragraph
from classgap.cli.parser import Arg, Command

if TYPE_CHECKING:
    from classgap.reproduce.schema import Recipe


@dataclass(frozen=True)
class RecipesCommand(Command):
    """List the recipes for `classgap reproduce`, or describe one.

    Examples:
      classgap recipes
      classgap recipes mr2-table-3
    """

    ARGS: ClassVar[Mapping[str, Arg]] = {"name": Arg("NAME", positional=True, default="list all")}

    name: str | None = None
    """Recipe to describe."""

    def run(self) -> None:
        """Print the list or the description."""
        from classgap.reproduce.catalog import load_recipe, recipe_names

        if self.name is not None:
            _print_recipe(load_recipe(self.name))
            return
        names = recipe_names()
        print_names(((name, load_recipe(name).title) for name in names), max(map(len, names)))
        print("\nRun `classgap recipes NAME` for details, or `classgap reproduce NAME` to run one.")


def _print_recipe(recipe: Recipe) -> None:
    from classgap.report.reproduction_rows import recipe_title
    from classgap.reproduce.catalog import find_base
    from classgap.reproduce.results import requirements

    print_paragraph(recipe_title(recipe))
    if recipe.where:
        print_paragraph(f"Described in {recipe.where}.")
    if recipe.note:
        print_paragraph(recipe.note)
    print()
    base = find_base(recipe.base)
    for name, value in (base.settings | recipe.settings).items():
        print(f"  {name}: {value}")
    for setting, reason in (base.assumed | recipe.assumed).items():
        print_paragraph(f"assumed {setting}: {reason}", indent=2, hanging=2)
    if required := requirements(recipe):
        print()
        print_paragraph(f"The full scale needs {required}.")
    print("\nScales:")
    for line in _scale_lines(recipe):
        print_paragraph(line, indent=2, hanging=2)
    for part in recipe.parts.values():
        print()
        print_paragraph(part.shows)
        print_paragraph(f"rows: {', '.join(part.rows)}", indent=2, hanging=2)
        print_paragraph(f"columns: {', '.join(part.columns)}", indent=2, hanging=2)
    for oddity in recipe.oddities:
        print_paragraph(f"Contradiction in the paper: {oddity}", hanging=2)


def _scale_lines(recipe: Recipe) -> list[str]:
    from classgap.remedies.search.budget import format_seconds
    from classgap.report.formatting import pluralize
    from classgap.reproduce.cells import make_plan
    from classgap.reproduce.schema import SCALES

    lines = []
    for scale in SCALES:
        if scale == "full-200" and scale not in recipe.scales:
            continue
        plan = make_plan(recipe, scale)
        time = "" if plan.seconds is None else f", about {format_seconds(plan.seconds / 2)} on two cores"
        data = ", ".join(dict.fromkeys(str(dict(cell.settings)["data"]) for cell in plan.cells))
        if not plan.cells:
            lines.append(f"{scale}: nothing to train")
            continue
        counts = plan.seeds_by_cell.values()
        few = f"{min(counts)} to " if min(counts) < plan.seeds else ""
        size = f"{pluralize(len(plan.cells), 'cell', 'cells')} × {few}{pluralize(plan.seeds, 'seed', 'seeds')}"
        files = "".join(f" {name}=PATH" for name in plan.files)
        lines.append(f"{scale}: {size}{time}; {data}{files and f'; --files{files}'}")
    return lines
