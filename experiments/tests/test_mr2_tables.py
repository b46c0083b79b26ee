"""Tables and chosen settings of made-up plans and results."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml


def test_changes_are_paired_by_seed_and_failures_count_as_zero(study) -> None:
    lines = [
        {"method": "plain", "seed": 1, "hard": 0.5},
        {"method": "plain", "seed": 2, "hard": 0.6},
        {"method": "new", "seed": 2, "hard": 0.9},
        {"method": "new", "seed": 1, "failed": "not finite"},
    ]
    np.testing.assert_allclose(study.tables.differences(lines, "new", "plain", "hard"), [30.0, -50.0])
    assert study.tables.interval(np.array([1.0, 3.0])) == "+2.0 ± 12.7"  # t of one degree of freedom: 12.706


def store(folder: Path, plan: str, lines: list[tuple[str, str, int, float]]) -> None:
    """Write a plan and its results, with equal hard and easy thirds."""
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


def test_cells_are_in_the_column_of_their_problem(
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
        "| new |  |  |  |  |  |  | 70.0 |  |  |",  # no common seed
        "| norm | 60.0 | +10.0 | +10.0 | 30.0 | -10.0 | -10.0 |  |  |  |",
        "| plain, lr 1 |  |  |  |  |  |  | 10.0 |  |  |",
        "| plain, lr 2 |  |  |  |  |  |  | 20.0 | +10.0 | +10.0 |",
    ]


def test_a_summary_has_one_row_per_problem(
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


def test_a_summary_needs_one_setting_per_form(study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study.plans, "HERE", tmp_path)
    plan = yaml.safe_load(PLAN) | {"problems": ["other"], "seeds": [1]}
    names = plan["methods"]["other"]
    store(tmp_path, yaml.safe_dump(plan, sort_keys=False), [("other", name, 1, 0.1) for name in names])
    with pytest.raises(SystemExit, match="several settings of a form for other"):
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
def test_names_contain_form_and_method(study, name: str, form: str, method: str) -> None:
    assert (study.plans.form_of(name), study.plans.method_of(name)) == (form, method)


TUNING = """
problems: [long, short]
seeds: [1, 2]
methods: {"norm 0.1, lr 1": {lr: 1}, "norm 0.2, lr 1": {lr: 2}, "plain": {}}
"""


def test_the_setting_with_the_best_mean_is_chosen(
    study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(study.plans, "HERE", tmp_path)
    figures = {"norm 0.1, lr 1": (0.5, 0.5), "norm 0.2, lr 1": (0.9, 0.2), "plain": (0.1, 0.1)}
    lines = [("long", name, seed, pair[seed - 1]) for name, pair in figures.items() for seed in (1, 2)]
    lines += [("short", name, seed, 1 - pair[seed - 1]) for name, pair in figures.items() for seed in (1, 2)]
    lines += [("long", "norm 0.1, lr 1", 3, 0.0)]  # a seed outside the plan
    store(tmp_path, TUNING, lines)
    study.selection.print_chosen("plan")
    chosen = yaml.safe_load(capsys.readouterr().out)["methods"]
    assert chosen["long"] == {"norm 0.2, lr 1": {"lr": 2}, "plain": {}}
    assert chosen["short"] == {"norm 0.1, lr 1": {"lr": 1}, "plain": {}}


def test_settings_below_the_fitted_accuracy_are_not_chosen(
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
    study.selection.print_chosen("plan")
    assert yaml.safe_load(capsys.readouterr().out)["methods"] == {"long": {"norm 0.2": {"lr": 2}}}
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan | {"fitted": 0.95}))
    with pytest.raises(SystemExit, match=r"norm 0.1, norm 0.2 fits 95% .*best fits 90.0%"):
        study.selection.print_chosen("plan")


def test_missing_results_raise(
    study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(study.plans, "HERE", tmp_path)
    names = ("norm 0.1, lr 1", "norm 0.2, lr 1", "plain")
    lines = [(problem, name, seed, 0.5) for problem in ("long", "short") for name in names for seed in (1, 2)]
    gone = {("short", "norm 0.2, lr 1", 1), ("short", "norm 0.2, lr 1", 2), ("short", "plain", 2)}
    store(tmp_path, TUNING, [line for line in lines if line[:3] not in gone])
    with pytest.raises(SystemExit) as raised:
        study.selection.print_chosen("plan")
    assert capsys.readouterr().out == ""
    assert str(raised.value.code).splitlines() == [
        "plan.jsonl lacks these seeds, settings cannot be compared:",
        "  short: norm 0.2, lr 1: 1, 2",
        "  short: plain: 2",
        "Run them, with --clinc or --cifar where needed:",
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


def test_worth_compares_the_best_settings(
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
    with pytest.raises(SystemExit, match=r"plan has no long with weight decay 0\.0005"):
        study.tables.worth(["plan"])
    store(tmp_path, DECAYS, lines[1:])
    with pytest.raises(SystemExit, match="settings cannot be compared"):
        study.tables.worth(["plan"])
