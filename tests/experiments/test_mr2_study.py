"""The experiments behind docs/mr2.md: plans that can be run, and tables that come from stored results."""

import contextlib
import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import yaml

from classgap import methods
from classgap.data import load
from classgap.engine import TrainConfig
from classgap.engine.config_file import checked_settings
from classgap.losses import FeatureNormLoss, MR2Loss
from classgap.methods import METHODS
from classgap.models import MODELS

ROOT = Path(__file__).parents[2]
HERE = ROOT / "experiments" / "mr2"
PLANS = sorted(path.stem for path in HERE.glob("*.yaml"))


@pytest.fixture(scope="module")
def study():
    """The module; the methods and networks that it registers leave with it."""
    before = [(registry, dict(registry.entries)) for registry in (METHODS, MODELS)]
    places = list(sys.path)
    sys.path.insert(0, str(HERE))
    yield importlib.import_module("study")
    sys.path[:] = places
    ours = {"stress_strength", "forms", *(path.stem for path in HERE.glob("*.py"))}
    for name in [name for name in sys.modules if name.split(".")[0] in ours]:
        del sys.modules[name]
    for registry, entries in before:
        registry.entries.clear()
        registry.entries.update(entries)


@pytest.mark.parametrize("name", PLANS)
def test_what_a_plan_asks_for_exists(study, name: str, tmp_path: Path) -> None:
    plan = study.plans.read_plan(name)
    files = {"clinc": tmp_path / "clinc.npz", "cifar": tmp_path / "cifar"}
    for problem in plan["problems"]:
        base = study.plans.settings_of(problem, plan["samples"], files) | plan.get("settings", {}).get(problem, {})
        for settings in study.plans.methods_of(plan, problem).values():
            config = TrainConfig(**checked_settings(base | (settings or {})))
            methods.build(config.method, num_classes=3, class_counts=[1, 1, 1], feature_dim=2, num_samples=3)


@pytest.mark.parametrize("name", PLANS)
def test_results_are_of_methods_that_the_plan_names(study, name: str) -> None:
    plan = study.plans.read_plan(name)
    for line in study.plans.stored(name):
        assert line["method"] in study.plans.methods_of(plan, line["problem"])
        assert line["seed"] in plan["seeds"]


ENDS = ["mnist1d-end", "clinc-end", "digits-end", "fitted-end", "plain-end", "cifar-end"]

SEARCHES = ["tuning", "digits-tuning", "fitted-choice", "plain-choice"]


@pytest.mark.parametrize(
    ("shown", "names"), [("hard", ["strength"]), ("hard", ["collapse"]), ("worth", [SEARCHES]), ("summary", [ENDS])]
)
def test_the_page_shows_what_is_stored(
    study, shown: str, names: list[str | list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    getattr(study.tables, shown)(*names)
    page = [line.strip() for line in (ROOT / "docs" / "mr2.md").read_text().splitlines()]
    for line in capsys.readouterr().out.splitlines():
        assert line in page


@pytest.mark.parametrize(
    ("plan", "row"),
    [
        ("mnist1d-end", "feature norm 0.03"),
        ("clinc-end", "feature norm 0.03"),
        ("mnist1d-seen", "MR²"),
        ("mnist1d-seen", "feature norm auto"),
        ("clinc-seen", "MR²"),
        ("clinc-seen", "feature norm auto"),
        ("digits-why", "MR², logit margin alone"),
        ("digits-why", "MR²"),
        ("augment", "MR²"),
        ("forms", "label smoothing"),
        ("forms", "MR², label smoothing"),
        ("forms", "MR², strength auto"),
    ],
)
def test_the_page_tells_what_is_stored(study, plan: str, row: str, capsys: pytest.CaptureFixture[str]) -> None:
    study.tables.hard(plan)
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith(f"| {row}")][:1]
    changes = line.split(" | ")[2::3]
    page = " ".join((ROOT / "docs" / "mr2.md").read_text().replace("−", "-").split())
    assert changes
    assert ", ".join(changes) in page


@pytest.mark.parametrize("name", ["gamma_order", "feature_size"])
def test_the_page_shows_what_was_printed(name: str) -> None:
    page = (ROOT / "docs" / "mr2.md").read_text().splitlines()
    assert set((HERE / f"{name}.md").read_text().splitlines()) <= set(page)


@pytest.mark.parametrize("method", ["mr2", "feature-norm"])
def test_the_page_shows_what_is_stored_of_the_stress_grid(method: str) -> None:
    page = (ROOT / "docs" / "mr2.md").read_text()
    stored = (HERE / "stress.jsonl").read_text().splitlines()
    hard = {(cell, name): value for (cell, name, _), value in map(json.loads, stored)}
    cells = {cell for cell, _ in hard}
    able = {cell for cell in cells if hard[cell, "erm"] >= 20}  # where cross-entropy itself can train
    assert f"in {len(able)} of {len(cells)} cells" in page
    changes = {cell: hard[cell, method] - hard[cell, "erm"] for cell in able}
    few, many = ([changes[cell] for cell in able if cell.startswith(f"{k} ")] for k in (10, 150))
    long = [changes[cell] for cell in able if "200 epochs" in cell]
    ranges = [f"{min(each):+.1f} to {max(each):+.1f}" for each in (few, many)]
    assert f"| `{method}` | {' | '.join(ranges)} | {sum(each > 0 for each in long)} of {len(long)} |" in page
    assert min(changes.values()) > -2  # the promise


CHOSEN = {"mnist1d": "tuning", "clinc": "tuning", "digits": "digits-tuning", "fitted": "fitted-choice"} | {
    "plain": "plain-choice",
    "mnist1d-seen": "tuning",
    "clinc-seen": "tuning",
}


@pytest.mark.parametrize(("end", "search"), CHOSEN.items())
def test_what_meets_the_test_samples_was_chosen_without_them(study, end: str, search: str) -> None:
    plan = study.plans.read_plan(end if end.endswith("seen") else f"{end}-end")
    assert study.plans.read_plan(search)["samples"] == "choice" != plan["samples"]
    for problem in plan["problems"]:
        assert study.plans.methods_of(plan, problem) == study.choosing.chosen_settings(search, problem)


@pytest.mark.parametrize(("validation", "hard"), [(0.3, 0.1), (0.0, 0.2)])
def test_where_samples_are_held_out_test_samples_are_not_looked_at(
    study, monkeypatch: pytest.MonkeyPatch, validation: float, hard: float
) -> None:
    class Run:
        def read_metrics(self) -> list[dict[str, float]]:
            last, final = ({f"{part}_{figure}": value for figure in FIGURES} for part, value in PARTS.items())
            return [{}, last, final | {"train_accuracy": 1.0}]

    FIGURES, PARTS = study.tables.FIGURES, {"validation": 0.1, "test": 0.2}
    monkeypatch.setattr(study.training, "trained", lambda settings, seed: contextlib.nullcontext(Run()))
    assert study.one({"validation": validation}, 1)["hard"] == hard


def test_half_a_line_that_a_killed_process_left_is_forgotten(
    study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study.plans, "HERE", tmp_path)
    (tmp_path / "plan.jsonl").write_text(json.dumps({"seed": 1}) + '\n{"seed": 2, "ha')
    assert study.plans.stored("plan") == [{"seed": 1}]
    study.plans.mend("plan")
    assert (tmp_path / "plan.jsonl").read_text() == '{"seed": 1}\n'


def test_choices_never_see_test_images(study, tmp_path: Path) -> None:
    for i in range(10):
        for part in ("train", "test"):
            place = tmp_path / "images" / part / "cat" / f"{part}{i}.png"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(part)
    made = study.plans.source(tmp_path / "images", "choice")
    held_out, trained = (sorted((made / part / "cat").iterdir()) for part in ("test", "train"))
    assert [path.name for path in held_out] == ["train0.png", "train5.png"]
    assert len(trained) == 8
    assert {path.read_text() for path in held_out + trained} == {"train"}


def test_new_samples_are_those_that_no_training_has_drawn(study, tmp_path: Path) -> None:
    count = {"train": 200, "test": 4}
    arrays = {f"{part}_x": np.arange(n, dtype=np.float32)[:, None] + n for part, n in count.items()}
    arrays |= {f"{part}_y": np.arange(n) % 2 for part, n in count.items()}
    np.savez(tmp_path / "file.npz", **arrays)
    made = study.plans.source(tmp_path / "file.npz", "new")
    drawn: set[float] = set()
    for place in study.plans.PLACES.values():
        data = load(f"features:{made}:on=new:fraction=0.2:data_seed={place['data_seed']}")
        drawn |= set(data.train.inputs[torch.arange(len(data.train))].flatten().tolist())
    new = set(data.test.inputs[torch.arange(len(data.test))].flatten().tolist())
    assert new == set(arrays["train_x"].flatten().tolist()) - drawn
    assert 80 < len(new) < 160  # three draws of 40 among 200 overlap
    assert study.plans.source(tmp_path / "file.npz", "end") == tmp_path / "file.npz"
    with pytest.raises(SystemExit, match="no new samples"):
        study.plans.source(tmp_path, "new")


def test_changes_are_paired_by_seed_and_failures_count_as_nothing_right(study) -> None:
    lines = [
        {"method": "plain", "seed": 1, "hard": 0.5},
        {"method": "plain", "seed": 2, "hard": 0.6},
        {"method": "new", "seed": 2, "hard": 0.9},
        {"method": "new", "seed": 1, "failed": "not finite"},
    ]
    np.testing.assert_allclose(study.tables.differences(lines, "new", "plain", "hard"), [30.0, -50.0])
    assert study.tables.interval(np.array([1.0, 3.0])) == "+2.0 ± 12.7"  # t of one degree of freedom: 12.706


def store(folder: Path, plan: str, lines: list[tuple[str, str, int, float]]) -> None:
    """A plan and its results, both thirds alike."""
    (folder / "plan.yaml").write_text(plan)
    named = [dict(zip(("problem", "method", "seed", "hard"), line, strict=True)) for line in lines]
    (folder / "plan.jsonl").write_text("".join(json.dumps(line | {"easy": line["hard"]}) + "\n" for line in named))


PLAN = """
problems: [long, short, other]
seeds: [1, 2]
methods:
  long: {"plain, lr 1": {}, "new, lr 1": {}, "norm, lr 1": {}}
  short: {"plain, lr 2": {}, "norm, lr 2": {}}
  other: {"plain, lr 1": {}, "plain, lr 2": {}, "new, lr 1": {}, "norm, lr 1": {}}
"""


def test_cells_stand_under_their_problem(
    study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(study.plans, "HERE", tmp_path)
    lines = [("long", "plain, lr 1", 1, 0.5), ("long", "norm, lr 1", 1, 0.6)]
    lines += [("short", "plain, lr 2", 1, 0.4), ("short", "norm, lr 2", 1, 0.3)]
    lines += [("other", "plain, lr 1", 1, 0.1), ("other", "plain, lr 2", 1, 0.2), ("other", "new, lr 1", 2, 0.7)]
    store(tmp_path, PLAN, lines)
    study.tables.hard("plan")
    assert capsys.readouterr().out.splitlines()[2:] == [
        "| plain | 50.0 |  |  | 40.0 |  |  |  |  |  |",
        "| new |  |  |  |  |  |  | 70.0 |  |  |",  # of another seed than those that it could be compared with
        "| norm | 60.0 | +10.0 | +10.0 | 30.0 | -10.0 | -10.0 |  |  |  |",
        "| plain, lr 1 |  |  |  |  |  |  | 10.0 |  |  |",
        "| plain, lr 2 |  |  |  |  |  |  | 20.0 | +10.0 | +10.0 |",
    ]


def test_a_summary_has_a_row_a_problem_for_what_all_plans_have(
    study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(study.plans, "HERE", tmp_path)
    figures = [("plain, lr 1", 0.5, 0.9, 1.0), ("new, lr 2", 0.6, 0.8, 0.7), ("old", 0.4, 0.9, 0.9), ("norm", 0, 0, 0)]
    for plan, count in (("one", 4), ("two", 3)):
        here = [(seed, *each) for each in figures[:count] for seed in (1, 2)]
        methods = {name: {} for name, *_ in figures[:count]}
        content = {"problems": [plan], "seeds": [1, 2], "methods": methods}
        (tmp_path / f"{plan}.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
        lines = [
            {
                "problem": plan,
                "method": name,
                "seed": seed,
                "hard": hard + seed * hard / 50,
                "easy": easy,
                "train": train,
            }
            for seed, name, hard, easy, train in here
        ]
        (tmp_path / f"{plan}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    study.tables.summary(["one", "two"])
    assert capsys.readouterr().out.splitlines() == [
        "| problem | seeds | fitted | plain: hard | new: change | easy | old: change | easy | new against old |",
        "|---|---|---|---|---|---|---|---|---|",
        # Changes of new are 10.2 and 10.4, half of what it is above old: 0.1 · 12.706 of an interval.
        "| one | 2 | 70 to 100 % | 51.5 | +10.3 ± 1.3 | -10.0 ± 0.0 | -10.3 ± 1.3 | +0.0 ± 0.0 | +20.6 ± 2.5 |",
        "| two | 2 | 70 to 100 % | 51.5 | +10.3 ± 1.3 | -10.0 ± 0.0 | -10.3 ± 1.3 | +0.0 ± 0.0 | +20.6 ± 2.5 |",
    ]
    (tmp_path / "two.jsonl").write_text(json.dumps(lines[0]) + "\n")
    with pytest.raises(SystemExit, match=r"two\.jsonl lacks these seeds"):
        study.tables.summary(["one", "two"])


def test_a_summary_shows_no_form_of_which_there_are_several_settings(
    study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study.plans, "HERE", tmp_path)
    plan = yaml.safe_load(PLAN) | {"problems": ["other"], "seeds": [1]}
    names = plan["methods"]["other"]
    store(tmp_path, yaml.safe_dump(plan, sort_keys=False), [("other", name, 1, 0.1) for name in names])
    with pytest.raises(SystemExit, match="plan has several settings of a form for other"):
        study.tables.summary(["plan"])


@pytest.mark.parametrize(
    ("name", "form", "method"),
    [
        ("cross-entropy", "cross-entropy", "cross-entropy"),
        ("cross-entropy, wd 0.002", "cross-entropy", "cross-entropy"),
        ("MR², lr 0.3, wd 0.01", "MR²", "MR²"),
        ("feature norm 0.03, lr 1, wd 0.002", "feature norm 0.03", "feature norm"),
        ("feature norm auto, lr 1, wd 0.002", "feature norm auto", "feature norm auto"),
        ("MR², λ = 0.5, slack 0", "MR², λ = 0.5, slack 0", "MR², λ = 0.5, slack"),
    ],
)
def test_a_name_tells_form_and_method(study, name: str, form: str, method: str) -> None:
    assert (study.plans.form_of(name), study.plans.method_of(name)) == (form, method)


TUNING = """
problems: [long, short]
seeds: [1, 2]
methods: {"norm 0.1, lr 1": {lr: 1}, "norm 0.2, lr 1": {lr: 2}, "plain": {}}
"""


def test_of_each_method_the_setting_with_the_best_mean_is_chosen(
    study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(study.plans, "HERE", tmp_path)
    figures = {"norm 0.1, lr 1": (0.5, 0.5), "norm 0.2, lr 1": (0.9, 0.2), "plain": (0.1, 0.1)}
    lines = [("long", name, seed, pair[seed - 1]) for name, pair in figures.items() for seed in (1, 2)]
    lines += [("short", name, seed, 1 - pair[seed - 1]) for name, pair in figures.items() for seed in (1, 2)]
    lines += [("long", "norm 0.1, lr 1", 3, 0.0)]  # a seed that the plan does not ask for
    store(tmp_path, TUNING, lines)
    study.choosing.choose("plan")
    chosen = yaml.safe_load(capsys.readouterr().out)["methods"]
    assert chosen["long"] == {"norm 0.2, lr 1": {"lr": 2}, "plain": {}}
    assert chosen["short"] == {"norm 0.1, lr 1": {"lr": 1}, "plain": {}}


def test_where_a_plan_asks_for_fitted_settings_others_are_not_chosen(
    study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(study.plans, "HERE", tmp_path)
    plan = {
        "problems": ["long"],
        "seeds": [1],
        "fitted": 0.9,
        "methods": {"norm 0.1": {"lr": 1}, "norm 0.2": {"lr": 2}},
    }
    results = [("norm 0.1", 0.5, 0.89), ("norm 0.2", 0.4, 0.9)]
    lines = [{"problem": "long", "method": m, "seed": 1, "hard": hard, "train": train} for m, hard, train in results]
    (tmp_path / "plan.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan))
    study.choosing.choose("plan")
    assert yaml.safe_load(capsys.readouterr().out)["methods"] == {"long": {"norm 0.2": {"lr": 2}}}
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan | {"fitted": 0.95}))
    with pytest.raises(
        SystemExit, match=r"none of norm 0.1, norm 0.2 fits 95% of the training samples; the best 90.0%"
    ):
        study.choosing.choose("plan")


def test_nothing_is_chosen_while_results_are_missing(
    study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(study.plans, "HERE", tmp_path)
    names = ("norm 0.1, lr 1", "norm 0.2, lr 1", "plain")
    lines = [(problem, name, seed, 0.5) for problem in ("long", "short") for name in names for seed in (1, 2)]
    gone = {("short", "norm 0.2, lr 1", 1), ("short", "norm 0.2, lr 1", 2), ("short", "plain", 2)}
    store(tmp_path, TUNING, [line for line in lines if line[:3] not in gone])
    with pytest.raises(SystemExit) as refused:
        study.choosing.choose("plan")
    assert capsys.readouterr().out == ""
    assert str(refused.value.code).splitlines() == [
        "plan.jsonl lacks these seeds, so settings cannot be compared:",
        "  short: norm 0.2, lr 1: 1, 2",
        "  short: plain: 2",
        "Run them, with --clinc or --cifar where a problem needs it:",
        "  python experiments/mr2/study.py run plan --problems short",
    ]


DECAYS = """
problems: [long]
seeds: [1, 2]
methods:
  "plain, lr 1, wd 0.0005": {lr: 1, weight_decay: 0.0005}
  "plain, lr 2, wd 0.0005": {lr: 2, weight_decay: 0.0005}
  "plain, lr 1, wd 0.5": {lr: 1, weight_decay: 0.5}
  "new, lr 1, wd 0.0005": {lr: 1, weight_decay: 0.0005}
  "new, lr 2, wd 0.0005": {lr: 2, weight_decay: 0.0005}
  "new, lr 1, wd 0.5": {lr: 1, weight_decay: 0.5}
  "norm, lr 1, wd 0.5": {lr: 1, weight_decay: 0.5}
"""


def test_what_decay_is_worth_is_told_by_the_best_settings(
    study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(study.plans, "HERE", tmp_path)
    figures = {"plain": (0.2, 0.3, 0.7), "new": (0.5, 0.1, 0.4)}
    settings = ("lr 1, wd 0.0005", "lr 2, wd 0.0005", "lr 1, wd 0.5")
    lines = [
        ("long", f"{form}, {setting}", seed, value + seed / 100)
        for form, values in (figures | {"norm": (0, 0, 0.9)}).items()
        for setting, value in zip(settings, values, strict=True)
        for seed in (1, 2, 3)
    ]
    store(tmp_path, DECAYS, lines)
    study.tables.worth(["plan"])
    assert capsys.readouterr().out.splitlines() == [
        "| problem | plain, decay 0.0005 | any decay | new: at 0.0005 | any |",  # norm was not run at 0.0005
        "|---|---|---|---|---|",
        "| long | 31.5 | 71.5 | +20.0 | -20.0 |",  # two of the three seeds are the plan's
    ]
    (tmp_path / "plan.yaml").write_text(DECAYS.replace("weight_decay: 0.0005", "weight_decay: 0.3"))
    with pytest.raises(SystemExit, match=r"plan has no setting of long with weight decay 0\.0005"):
        study.tables.worth(["plan"])
    store(tmp_path, DECAYS, lines[1:])
    with pytest.raises(SystemExit, match="settings cannot be compared"):
        study.tables.worth(["plan"])


def test_the_bound_of_a_penalty_is_in_proportion_to_its_force(study) -> None:
    logits, targets = torch.tensor([[3.0, 0.0, -1.0], [0.0, 2.0, 1.0]]), torch.tensor([0, 1])
    features = torch.tensor([[1.0, 2.0], [0.5, -1.0]])
    auto = FeatureNormLoss(3)
    auto(logits, targets, features=features)
    for force in (1.0, 2.0, 8.0):
        penalty = study.forms.PenaltyLoss(3, force=force)
        penalty(logits, targets, features=features)
        expected = force / 2 * auto.terms["norm_weight"]  # "auto" has 2
        torch.testing.assert_close(penalty.terms["penalty_weight"], expected)
    capped = study.forms.PenaltyLoss(3, force=8.0, strength=1e-3)
    capped(logits, targets, features=features)
    assert capped.terms["penalty_weight"].item() == pytest.approx(1e-3)


def test_smoothed_labels_are_those_of_torch(study) -> None:
    torch.manual_seed(0)
    logits, features, targets = torch.randn(6, 3), torch.randn(6, 4), torch.tensor([0, 1, 2, 0, 1, 2])
    plain, smoothed = MR2Loss(3), study.forms.SmoothedMR2Loss(3, smoothing=0.2)
    for loss in (plain, smoothed):
        loss(logits, targets, features=features)
    scaled = logits / plain.margins()[targets][:, None]
    expected = F.cross_entropy(scaled, targets, label_smoothing=0.2)
    torch.testing.assert_close(smoothed.terms["logit"] + 0.2 * smoothed.terms["smooth"], expected)
    torch.testing.assert_close(smoothed.terms["representation_weight"], plain.terms["representation_weight"])
