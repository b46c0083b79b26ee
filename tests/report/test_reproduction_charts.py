"""Figures of recipes show all their points."""

import re

from classgap.report.charts.reproduction_charts import reproduction_charts
from classgap.reproduce.results import RecipeResult
from classgap.reproduce.schema import Recipe

RECIPE = Recipe.model_validate(
    {
        "name": "moons",
        "paper": "elm",
        "item": "Figure 1",
        "title": "Two moons",
        "base": "elm-moons",
        "parts": {
            "a": {
                "shows": "Embeddings",
                "rows": {"LA": {}, "ELM": {}},
                "columns": {"spread": {"metric": "spread@all"}},
                "plot": {"kind": "map", "x": "first", "y": "second"},
            }
        },
    }
)
RECORD = {
    "metrics": {},
    "map": {"Head": [(i / 200, 0.1) for i in range(200)], "Tail": [(i / 10, 0.9) for i in range(10)]},
    "boundary": [0.0, 1.0, -0.5],  # y = 0.5
}


def draw(record: dict) -> list[str]:
    records = {("a", row, "spread"): (record,) for row in ("LA", "ELM")}
    return [str(chart) for chart in reproduction_charts(RecipeResult(RECIPE, "full", 1, (), records, "no claim"), "a")]


def test_maps_have_a_panel_per_row_and_a_dot_per_sample() -> None:
    panels = draw(RECORD)
    assert len(panels) == 2
    for panel, row in zip(panels, ("LA", "ELM"), strict=True):
        assert f"{row}: second</text>" in panel  # readers see which row it is
        wide = panel.split("</svg>")[0]
        sizes = [path.count("M") for path in re.findall(r'<path d="([^"]*)" class="dots', wide)]
        assert {200, 10} <= set(sizes)
        assert "decision boundary" in panel


def test_the_boundary_is_left_out_if_it_is_outside() -> None:
    assert "decision boundary" not in draw({**RECORD, "boundary": [0.0, 1.0, -2.0]})[0]
    assert "decision boundary" not in draw({**RECORD, "boundary": None})[0]


def test_runs_without_a_map_draw_nothing() -> None:
    assert draw({"metrics": {}, "map": None}) == []
