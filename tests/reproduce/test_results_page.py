"""docs/results.md and docs/open-questions.md are what ``make docs`` generates from results/."""

import math
from pathlib import Path
from types import ModuleType

import pytest

from classgap.report.reproduction_rows import reproduction_headline
from classgap.reproduce.catalog import load_recipe
from classgap.reproduce.results import EntryResult, RecipeResult
from classgap.reproduce.store import ResultStore
from classgap.reproduce.verdicts import Comparison
from scripts import load_script

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    return load_script("docs/generate_results.py")


@pytest.mark.skipif(not (ROOT / "results").exists(), reason="the source distribution has no results/")
def test_the_pages_are_up_to_date(generator: ModuleType) -> None:
    store = ResultStore(ROOT / "results")
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert page == generator.generate_results(store)
    assert (ROOT / "docs" / "open-questions.md").read_text(encoding="utf-8") == generator.generate_questions(store)


def test_the_first_screen_is_honest_about_the_scale() -> None:
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    first_screen = page.split("\n## ")[0]
    assert "MNIST-1D" in first_screen[:600]
    for text in ("| **reproduced**", "| **not reproduced**", "not run at the published scale", "main claims"):
        assert text in first_screen


def test_settings_are_no_results(generator: ModuleType, tmp_path: Path) -> None:
    (result,) = generator.find_results(ResultStore(tmp_path), ["elm-table-3"])
    summary, *_, row = generator._glance([result])
    assert "0 distinct claims with runs: 0 reproduced" in summary
    assert row.startswith("| **no claim**")
    assert reproduction_headline(result).startswith("12 of 12 settings")


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"MNIST-1D": [1.0, 2.0], "digits": [3.0]}, "Yes."),
        ({"MNIST-1D": [1.0, 2.0], "digits": [-3.0]}, "It depends."),
        ({"MNIST-1D": [1.0, 0.0, 0.0], "digits": [3.0]}, "It depends."),  # one of three is too few
        ({"MNIST-1D": [0.0, -1.0], "digits": [0.0]}, "No."),
        ({}, "Not run."),
    ],
)
def test_answers_follow_the_rule(generator: ModuleType, changes: dict[str, list[float]], word: str) -> None:
    entries = tuple(
        EntryResult(
            "a", "MR2", data, "higher", math.inf, (1.0,), Comparison(5, mean, 0, 0, 0.01 if mean else 0.5), "mixed"
        )
        for data, means in changes.items()
        for mean in means
    )
    result = RecipeResult(load_recipe("question-tuning"), "cpu", 5, entries, {}, "mixed")
    parts = {"a": result.recipe.parts["a"].model_copy(update={"claims": None})}
    result = RecipeResult(result.recipe.model_copy(update={"parts": parts}), "cpu", 5, entries, {}, "mixed")
    assert generator.answer(result).startswith(word)
    if word == "It depends." and "digits" in changes and changes["digits"] == [-3.0]:
        assert "MNIST-1D: 2 of 2 higher, 0 lower (+1.0 to +2.0 points)" in generator.answer(result)
