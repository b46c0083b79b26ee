"""Every table and figure has a recipe that validates, with complete numbers, whose runs have valid settings."""

import math
import re
from itertools import chain
from pathlib import Path

import pytest

from classgap.cli.main import main
from classgap.data import DATASETS
from classgap.methods.catalog import METHODS
from classgap.models import MODELS
from classgap.registry import Registry, Spec
from classgap.reproduce.catalog import load_bases, load_recipe, recipe_names
from classgap.reproduce.cells import Plan, make_plan
from classgap.reproduce.results import collect
from classgap.reproduce.running import run_plan
from classgap.reproduce.schema import Recipe
from classgap.reproduce.store import ResultStore

ITEMS = {
    "mr2": {"Table": range(1, 16), "Figure": range(1, 11)},
    "lmdl": {"Table": range(1, 5), "Figure": range(1, 8)},
    "elm": {"Table": range(2, 4), "Figure": range(1, 8)},  # ELM's Table 1 has no numbers
}

# Number of values and of printed changes, and the sum of each weighted by its position (1, 2, …), by table, from an
# independent transcription of the papers; a changed or exchanged number changes a sum.
NUMBERS = {
    "mr2-table-1": (120, 84, 540441.6, 1718.7),
    "mr2-table-2": (64, 24, 157449.5, 593.8),
    "mr2-table-3": (24, 20, 21602.1, 419.1),
    "mr2-table-4": (10, 0, 1354.593, 0.0),
    "mr2-table-5": (24, 12, 22892.5, 143.1),
    "mr2-table-6": (20, 0, 1035.8266, 0.0),
    "mr2-table-7": (12, 0, 3173.1, 0.0),
    "mr2-table-8": (20, 20, 14823.1, 663.1),
    "mr2-table-9": (20, 20, 15356.8, 340.8),
    "mr2-table-10": (40, 20, 60330.4, 204.2),
    "mr2-table-11": (72, 36, 200796.2, 980.3),
    "mr2-table-12": (12, 0, 5468.5, 0.0),
    "mr2-table-13": (14, 0, 7400.8, 0.0),
    "mr2-table-14": (20, 10, 16587.0, 293.4),
    "mr2-table-15": (80, 0, 8.1504, 0.0),
    "lmdl-table-1": (90, 0, 386566.891, 0.0),
    "lmdl-table-2": (30, 0, 43627.25, 0.0),
    "lmdl-table-3": (20, 0, 19659.378, 0.0),
    "lmdl-table-4": (11, 0, 6086.361, 0.0),
    "elm-table-2": (32, 0, 31318.28, 0.0),
    "elm-table-3": (12, 0, 9935.2056, 0.0),
}

DATA_OPTIONS = {"fraction", "imbalance", "label_noise", "label_noise_type", "data_seed"}


def test_every_table_and_figure_has_a_recipe() -> None:
    expected = {
        f"{paper}-{kind.lower()}-{number}"
        for paper, kinds in ITEMS.items()
        for kind, numbers in kinds.items()
        for number in numbers
    }
    assert expected <= set(recipe_names())
    for name in expected:
        recipe = load_recipe(name)
        assert f"{recipe.paper}-{recipe.item.lower().replace(' ', '-')}" == name


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_complete(name: str) -> None:
    parts = load_recipe(name).parts.values()
    values = [v for part in parts for v in chain.from_iterable(part.values.values())]
    changes = [v for part in parts for v in chain.from_iterable(part.change.values()) if v is not None]
    assert all(isinstance(value, float) for value in values)
    counts = len(values), len(changes)
    sums = [math.fsum(i * v for i, v in enumerate(numbers, start=1)) for numbers in (values, changes)]
    assert counts == NUMBERS[name][:2]
    assert sums == pytest.approx(NUMBERS[name][2:], abs=1e-6)


def test_figures_repeat_the_numbers_of_their_tables() -> None:
    for figure, table in (
        ("mr2-figure-4", "mr2-table-10"),
        ("mr2-figure-5", "mr2-table-12"),
        ("mr2-figure-6", "mr2-table-13"),
        ("lmdl-figure-3", "lmdl-table-2"),
        ("lmdl-figure-5", "lmdl-table-3"),
    ):
        assert load_recipe(figure).parts["a"].values == load_recipe(table).parts["a"].values


@pytest.mark.parametrize(("release", "paper"), [("mr2-table-1-release", "ab"), ("mr2-table-2-release", "a")])
def test_recipes_of_the_published_code_have_the_numbers_of_the_paper(release: str, paper: str) -> None:
    ours, papers = load_recipe(release).parts, load_recipe(release.removesuffix("-release")).parts
    assert "".join(ours) == paper
    for name, part in ours.items():
        assert (part.values, part.change) == (papers[name].values, papers[name].change)


def test_small_scales_do_not_interpolate_with_random_weights() -> None:
    interpolated = {
        scale: {dict(cell.settings).get("wise_ft_alpha", 1.0) for cell in plan.cells}
        for scale in ("tiny", "cpu", "full")
        for plan in [make_plan(load_recipe("mr2-table-1-release"), scale)]
    }
    assert interpolated == {"tiny": {1.0}, "cpu": {1.0}, "full": {1.0, 0.6}}


def test_claims_are_those_of_the_paper() -> None:
    gap = load_recipe("mr2-figure-7").parts["a"]  # MR² shrinks the gap, whatever the spread of all classes does
    assert all("spread@gap" in column["metric"] for column in gap.columns.values())
    collapse = make_plan(load_recipe("mr2-table-6"), "cpu")  # a ratio of 0.0007, with nothing to compare it with
    assert {entry.baseline for entry in collapse.entries} == {None}


@pytest.mark.parametrize("name", recipe_names())
def test_recipes_resolve(name: str) -> None:
    recipe = load_recipe(name)
    for scale in ("tiny", "cpu", "full", *(each for each in recipe.scales if each == "full-200")):
        plan = make_plan(recipe, scale)
        check_names(plan)
        assert plan.entries or name == "mr2-figure-2"  # functions, nothing to run
        for cell in plan.cells:
            data = dict(cell.settings)["data"]
            if scale == "tiny":
                assert str(data).split(":")[0] in ("mnist1d", "digits", "two-moons")


@pytest.mark.parametrize("name", recipe_names())
def test_tiny_takes_about_a_minute(name: str) -> None:
    plan = make_plan(load_recipe(name), "tiny")
    assert plan.seconds is not None
    assert plan.seconds / 2 <= 60  # on two cores


def test_time_is_that_of_the_base_of_each_entry() -> None:
    plan = make_plan(load_recipe("question-tuned"), "cpu", seeds=1)
    signals = 3 * 4 * (1 + 200 / 40)  # three methods, 4 seconds per 40 epochs, with 40 and 200 epochs
    sentences, digits, images = 3 * 6, 3 * 1, 9 * 600
    assert plan.seconds == pytest.approx(signals + sentences + digits + images)
    assert plan.select(["* / digits"]).seconds == pytest.approx(digits)


def test_files_are_named_by_scale(capsys: pytest.CaptureFixture[str]) -> None:
    main(["recipes", "question-tuned"])
    tiny, cpu = re.search(r"tiny: (.*?)cpu: (.*?)full: ", capsys.readouterr().out, re.DOTALL).groups()  # type: ignore[union-attr]
    assert "--files" not in tiny
    assert re.findall(r"(\w+)=PATH", cpu) == ["clinc150_new", "cifar100"]


def test_assumptions_name_their_reason() -> None:
    for name in recipe_names():
        assert all(len(reason) > 7 for reason in load_recipe(name).assumed.values())
    for base in load_bases().values():
        assert all(len(reason) > 7 for reason in base.assumed.values())


def test_unknown_keys_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text("paper: mr2\nitem: Table 1\ntitle: t\nbase: mr2-cifar\nparts: {}\nsetings: {}\n")
    with pytest.raises(ValueError, match=r"wrong\.yaml: setings"):
        load_recipe(str(path))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"values": {"CE": [1.0]}}, "must have 2 numbers, got 1"),
        ({"values": {"XX": [1.0, 2.0]}}, "'XX'"),
        ({"claims": ["CE / hard"]}, "'CE / hard' names no entry"),
    ],
)
def test_wrong_shapes_are_rejected(change: dict, message: str) -> None:
    from recipe_cases import MOONS

    part = {**MOONS["parts"]["a"], "baseline": None, **change}
    with pytest.raises(ValueError, match=message):
        Recipe.model_validate({**MOONS, "parts": {"a": part}})


def test_scales_that_a_recipe_does_not_have_are_rejected() -> None:
    with pytest.raises(ValueError, match="mr2-table-3 has no scale full-200"):
        make_plan(load_recipe("mr2-table-3"), "full-200")
    plan = make_plan(load_recipe("mr2-table-11"), "full-200")
    assert {dict(cell.settings)["epochs"] for cell in plan.cells} == {200}


def test_names_are_suggested() -> None:
    with pytest.raises(ValueError, match="mr2-table-3"):
        load_recipe("mr2-tabel-3")


def test_cells_are_selected_by_pattern() -> None:
    plan = make_plan(load_recipe("mr2-table-3"), "tiny")
    assert {each.row for each in plan.select(["f MR2"]).entries} == {"f MR2"}
    assert len(plan.select(["* / hard"]).entries) == 7
    assert len(plan.select(["f MR2"]).cells) == 2  # with the baseline
    with pytest.raises(ValueError, match="g MR2"):
        plan.select(["g MR2"])


@pytest.mark.slow
@pytest.mark.parametrize("name", recipe_names())
def test_tiny_scales_run(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    store = ResultStore(tmp_path_factory.getbasetemp() / "store")  # recipes share runs
    plan = make_plan(load_recipe(name), "tiny")
    assert run_plan(plan, store, executor="process:2") == {}
    result = collect(plan, store)
    assert all(entry.values for entry in result.entries)
    assert result.verdict not in ("not run", "cannot be run here")


def check_names(plan: Plan) -> None:
    """Check data, model and method names and their options against the registries."""
    for cell in plan.cells:
        settings = cell.to_dict()
        check_spec(DATASETS, str(settings["data"]), DATA_OPTIONS)
        check_spec(MODELS, str(settings["model"]))
        for method in str(settings.get("method", "erm")).split("+"):
            check_spec(METHODS, method)


def check_spec(registry: Registry, text: str, more: set[str] = frozenset()) -> None:
    spec = Spec.parse(text)
    entry = registry.entry(spec.name)
    assert set(spec.options) <= set(entry.options()) | more, text


@pytest.mark.parametrize(
    ("row", "fact"),
    [
        ("base: nope", "nope"),
        ("against: 3", "against"),
        ("baseline: [x]", "baseline"),
        ("data_options: [x]", "data_op"),
    ],
)
def test_damaged_recipes_are_reported_in_one_line(tmp_path, capsys, row, fact):
    text = f"""
paper: elm
item: Table 9
title: Two moons
base: elm-moons
parts:
  a: {{shows: Moons, rows: {{CE: {{{row}}}}}, columns: {{all: {{metric: accuracy}}}}}}
"""
    (tmp_path / "mine.yaml").write_text(text)
    for words in (["recipes"], ["reproduce", "--no-train"]):
        assert main([words[0], str(tmp_path / "mine.yaml"), *words[1:]]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert fact in line


def test_notes_on_the_networks_of_small_scales_are_true() -> None:
    networks = {
        scale: len({dict(entry.cell.settings)["model"] for entry in plan.entries if entry.part == "a"})
        for scale in ("tiny", "cpu")
        for plan in [make_plan(load_recipe("mr2-table-2"), scale)]
    }
    assert networks == {"tiny": 1, "cpu": 4}
    assert "cpu has four small networks" in load_recipe("mr2-table-2").note
    rows = {entry.row for scale in ("tiny", "cpu") for entry in make_plan(load_recipe("mr2-table-15"), scale).entries}
    assert rows == {"ResNet-32", "ResNet-32 + MR2", "CLIP RN-50", "CLIP RN-50 + MR2"}
