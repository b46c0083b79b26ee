"""docs/mr2.md matches the stored results, and its settings were chosen without the samples of the test."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from classgap.reproduce.cells import make_plan
from classgap.reproduce.results import RecipeResult
from classgap.reproduce.store import ResultStore

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "mr2.md"
STORE = ResultStore(ROOT / "results")


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_mr2", ROOT / "docs" / "generate_mr2.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def search(generator: ModuleType) -> RecipeResult:
    return generator.find_result("mr2-search", STORE)


def test_the_tables_are_up_to_date(generator: ModuleType) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert generator.fill(page, generator.generate_tables(STORE)) == page


def test_the_figures_in_the_text_are_up_to_date(generator: ModuleType) -> None:
    figures = generator.state_figures(STORE)
    assert generator.find_unstated(PAGE.read_text(encoding="utf-8"), figures) == []
    assert generator.find_unstated("gains −2.0 ± 0.1", ["gains -2.0 ± 0.1", "gains +2.0"]) == ["gains +2.0"]


def test_the_chart_and_the_recipe_speak_the_language_of_the_page(generator: ModuleType) -> None:
    rows = generator.find_result("mr2-forms", STORE).recipe.parts["a"].rows
    assert {row for names in generator.FORMS.values() for row in names} <= set(rows)
    for word in ("size", "power", "force", "bank"):
        assert not [row for row in rows if word in row]


def test_the_recipes_state_the_seeds_of_each_column(generator: ModuleType) -> None:
    for name in ("question-tuned", "mr2-search", "mr2-tuned-again"):
        result = generator.find_result(name, STORE)
        plan = make_plan(result.recipe, "cpu")
        assert [len(each.values) for each in result.entries] == [each.seeds for each in plan.entries]


def test_tables_are_found_by_their_header(generator: ModuleType) -> None:
    page = "Text.\n\n  | a | b |\n  |---|---|\n  | old | 1 |\n  | old | 2 |\n\n| a |\n|---|\n| kept |\n"
    filled = "Text.\n\n  | a | b |\n  |---|---|\n  | new | 3 |\n\n| a |\n|---|\n| kept |\n"
    assert generator.fill(page, [[["a", "b"], ["new", "3"]]]) == filled
    for wrong in ("Text.\n", page + page):
        with pytest.raises(ValueError, match=r"\| a \| b \|"):
            generator.fill(wrong, [[["a", "b"], ["new", "3"]]])


@pytest.mark.parametrize(
    ("recipe", "part", "row"),
    [
        ("mr2-tuned-again", "b", "feature norm 0.03"),
        ("mr2-tuned-again", "a", "MR²"),
        ("mr2-tuned-again", "a", "feature norm auto"),
        ("mr2-digits", "a", "MR², logit margin alone"),
        ("mr2-digits", "a", "MR²"),
        ("mr2-forms", "a", "label smoothing"),
        ("mr2-forms", "a", "MR², label smoothing"),
        ("mr2-forms", "a", "MR², strength auto"),
    ],
)
def test_changes_in_the_text_match_the_results(generator: ModuleType, recipe: str, part: str, row: str) -> None:
    result = generator.find_result(recipe, STORE)
    found = [each.comparison for each in result.part(part) if each.row == row]
    # Digits of an independent formula: mean and half of the interval of the paired t-test.
    changes = [f"{round(each.mean, 1) + 0.0:+.1f} ± {(each.high - each.low) / 2:.1f}" for each in found]
    page = " ".join(PAGE.read_text(encoding="utf-8").replace("−", "-").split())
    assert len(found) == len(result.recipe.parts[part].columns)
    assert ", ".join(changes) in page


def test_changes_with_augmentation_match_the_results(generator: ModuleType) -> None:
    result = generator.find_result("mr2-augment", STORE)
    page = " ".join(PAGE.read_text(encoding="utf-8").replace("−", "-").split())
    hard, easy = (generator.find_entry(result, "a", "MR²", column).comparison for column in ("hard", "easy"))
    assert f"on average {hard.mean:+.1f} ± {hard.high - hard.mean:.1f}; easy third {easy.mean:+.1f}" in page


TESTED = {column: ("question-tuned", column) for column in ("MNIST-1D, 40 epochs", "MNIST-1D, 200 epochs", "CLINC150")}
TESTED |= {column: ("question-tuned", column) for column in ("digits", "CIFAR-100, fitted", "CIFAR-100, plain")}
METHODS = {"cross-entropy": "cross-entropy", "MR2": "MR²", "feature norm": "feature norm auto"}


def stored_settings(result: RecipeResult, part: str, row: str, column: str) -> dict[str, float]:
    """Return learning rate and weight decay of stored runs; they are left out where they are the defaults."""
    (settings,) = {json.dumps(record["settings"], sort_keys=True) for record in result.records[part, row, column]}
    return {name: json.loads(settings).get(name, value) for name, value in (("lr", 0.1), ("weight_decay", 0.0005))}


@pytest.mark.parametrize("column", TESTED)
@pytest.mark.parametrize(("row", "method"), METHODS.items())
def test_settings_were_chosen_on_other_samples_and_seeds(
    generator: ModuleType, search: RecipeResult, column: str, row: str, method: str
) -> None:
    part = generator.SEARCHED[column]
    best, _ = generator.find_best(search, part, column, method)
    tuned = generator.find_result("question-tuned", STORE)
    assert stored_settings(tuned, "a", row, column) == stored_settings(search, part, best, column)
    chosen, tested = search.records[part, best, column], tuned.records["a", row, column]
    assert not {each["seed"] for each in chosen} & {each["seed"] for each in tested}
    if column == "digits":
        assert {each["settings"]["val_fraction"] for each in chosen} == {0.3}  # held-out training samples
    else:
        assert {each["settings"]["data"] for each in chosen} != {each["settings"]["data"] for each in tested}


def test_a_fixed_strength_was_chosen_too(generator: ModuleType, search: RecipeResult) -> None:
    again = generator.find_result("mr2-tuned-again", STORE)
    for column in again.recipe.parts["b"].columns:
        best, _ = generator.find_best(search, "b", column, "feature norm")
        assert best.startswith("feature norm 0.03")
        expected = stored_settings(search, "b", best, column)
        assert stored_settings(again, "b", "feature norm 0.03", column) == expected


def test_the_best_setting_fits_the_training_samples(generator: ModuleType, search: RecipeResult) -> None:
    records = {row: search.records["c", row, "CIFAR-100, fitted"] for row in search.recipe.parts["c"].rows}
    best, hard = generator.find_best(search, "c", "CIFAR-100, fitted", "MR²")
    assert records[best][0]["metrics"]["train_accuracy"] >= 0.9
    able = [r[0]["metrics"] for row, r in records.items() if row.startswith("MR²")]
    assert hard == pytest.approx(100 * max(each["hard"] for each in able if each["train_accuracy"] >= 0.9))


@pytest.mark.parametrize("method", ["mr2", "feature-norm"])
def test_the_page_matches_the_stress_grid(method: str) -> None:
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    stored = (ROOT / "benchmarks" / "results" / "stress_strength.jsonl").read_text().splitlines()
    hard = {(cell, name): value for (cell, name, _), value in map(json.loads, stored)}
    cells = {cell for cell, _ in hard}
    able = {cell for cell in cells if hard[cell, "erm"] >= 20}  # where cross-entropy itself can train
    assert f"in {len(able)} of {len(cells)} configurations" in page
    changes = {cell: hard[cell, method] - hard[cell, "erm"] for cell in able}
    few, many = ([changes[cell] for cell in able if cell.startswith(f"{k} ")] for k in (10, 150))
    long = [changes[cell] for cell in able if "200 epochs" in cell]
    ranges = [f"{min(each):+.1f} to {max(each):+.1f}" for each in (few, many)]
    assert f"| `{method}` | {' | '.join(ranges)} | {sum(each > 0 for each in long)} of {len(long)} |" in page
    assert min(changes.values()) > -2  # the promise
