"""Figures of recipes show all their points."""

import re
from itertools import pairwise

import pytest

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


LEVELS = 9
CLASSES = {
    "name": ["a", "b", "c"],
    "groups": [["head"], ["head"], ["tail"]],
    "logit_margin_quantiles": [
        [float(i) for i in range(LEVELS)],
        [9.0] * LEVELS,
        [float(-i) for i in range(8, -1, -1)],
    ],
}


def draw_distributions(kind: str, records: dict[str, dict]) -> list[str]:
    plot = {"kind": kind, "x": "margin", "y": "share", "metric": "logit_margin", "classes": ["head", "torso", "tail"]}
    part = {"shows": "Margins", "rows": {row: {} for row in records}, "columns": {"m": {"metric": "margin"}}}
    recipe = Recipe.model_validate({**RECIPE.model_dump(), "parts": {"a": {**part, "plot": plot}}})
    found = {("a", row, "m"): (record,) for row, record in records.items()}
    return [str(chart) for chart in reproduction_charts(RecipeResult(recipe, "cpu", 1, (), found, "no claim"), "a")]


@pytest.mark.parametrize("kind", ["density", "cumulative"])
def test_distributions_have_a_panel_per_group_with_all_methods(kind: str) -> None:
    only_tail = {**CLASSES, "logit_margin_quantiles": [None, None, CLASSES["logit_margin_quantiles"][2]]}
    records = {"CE": {"classes": CLASSES}, "ELM": {"classes": only_tail}}
    head, tail = draw_distributions(kind, records)  # no class is in the torso
    assert "head: share" in head
    assert "tail: share" in tail
    assert ">ELM</text>" not in head
    tones = [dict(re.findall(r'class="end (tone\d)"[^>]*>(\w+)<', chart)) for chart in (head, tail)]
    assert tones == [{"tone0": "CE"}, {"tone0": "CE", "tone1": "ELM"}]


def test_a_density_is_that_of_the_samples() -> None:
    (panel,) = draw_distributions("density", {"CE": {"classes": {**CLASSES, "groups": [["head"], [], []]}}})
    ticks = [float(text) for text in re.findall(r'class="tick"[^>]*text-anchor="end">([\d.]+)<', panel)]
    assert 0.1 < max(ticks) < 0.5  # most of the samples lie in an interval of 4


def test_labels_stay_in_the_frame() -> None:
    records = {f"method {i}": {"classes": CLASSES} for i in range(12)}  # all densities end at 0, at the bottom
    places = [float(y) for y in re.findall(r'class="end[^>]*? y="([\d.]+)"', draw_distributions("density", records)[0])]
    assert len(places) == 24  # wide and narrow
    assert max(places) < 380
    wide = sorted(places[:12])
    assert all(b - a >= 15 for a, b in pairwise(wide))


def test_classes_have_one_color_in_all_maps() -> None:
    maps = {"LA": {"1": [(0.0, 0.0)], "2": [(1.0, 1.0)]}, "ELM": {"2": [(0.0, 0.0)], "1": [(1.0, 1.0)]}}
    records = {("a", row, "spread"): ({**RECORD, "map": points, "boundary": None},) for row, points in maps.items()}
    panels = reproduction_charts(RecipeResult(RECIPE, "full", 1, (), records, "no claim"), "a")
    first, second = (set(re.findall(r'class="end (tone\d)"[^>]*>(\w)<', str(panel))) for panel in panels)
    assert first == second == {("tone0", "1"), ("tone1", "2")}


def test_maps_of_a_figure_show_the_same_classes() -> None:
    maps = {"LA": {"1": [(0.0, 0.0)], "2": [(1.0, 1.0)]}, "ELM": {"3": [(0.0, 0.0)], "2": [(1.0, 1.0)]}}
    records = {("a", row, "spread"): ({**RECORD, "map": points, "boundary": None},) for row, points in maps.items()}
    panels = reproduction_charts(RecipeResult(RECIPE, "full", 1, (), records, "no claim"), "a")
    assert [set(re.findall(r'class="end tone\d"[^>]*>(\w)<', str(panel))) for panel in panels] == [{"2"}, {"2"}]
