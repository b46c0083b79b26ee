"""Experiments of docs/mr2.md: plans can be run, and tables match the stored results."""

import contextlib
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from classgap import methods
from classgap.data import load
from classgap.engine import TrainConfig
from classgap.engine.config import parse_settings

ROOT = Path(__file__).parents[2]
HERE = ROOT / "experiments" / "mr2"
PLANS = sorted(path.stem for path in HERE.glob("*.yaml"))


@pytest.mark.parametrize("name", PLANS)
def test_plans_have_valid_settings(study, name: str, tmp_path: Path) -> None:
    plan = study.plans.read_plan(name)
    files = {"clinc": tmp_path / "clinc.npz", "cifar": tmp_path / "cifar"}
    for problem in plan["problems"]:
        base = study.plans.problem_settings(problem, plan["samples"], files) | plan.get("settings", {}).get(problem, {})
        for settings in study.plans.plan_methods(plan, problem).values():
            config = TrainConfig(**parse_settings(base | (settings or {})))
            methods.build(config.method, num_classes=3, class_counts=[1, 1, 1], feature_dim=2, num_samples=3)


@pytest.mark.parametrize("name", PLANS)
def test_results_belong_to_their_plan(study, name: str) -> None:
    plan = study.plans.read_plan(name)
    for line in study.plans.read_results(name):
        assert line["method"] in study.plans.plan_methods(plan, line["problem"])
        assert line["seed"] in plan["seeds"]


ENDS = ["mnist1d-end", "clinc-end", "digits-end", "fitted-end", "plain-end", "cifar-end"]

SEARCHES = ["tuning", "digits-tuning", "fitted-choice", "plain-choice"]


@pytest.mark.parametrize(
    ("shown", "names"), [("hard", ["strength"]), ("hard", ["collapse"]), ("worth", [SEARCHES]), ("summary", [ENDS])]
)
def test_tables_of_the_page_match_the_results(
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
        ("augment", "MR² with AutoAugment"),
        ("forms", "label smoothing"),
        ("forms", "MR², label smoothing"),
        ("forms", "MR², strength auto"),
    ],
)
def test_changes_on_the_page_match_the_results(study, plan: str, row: str, capsys: pytest.CaptureFixture[str]) -> None:
    study.tables.hard(plan)
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith(f"| {row} |")]
    changes = line.split(" | ")[2::3]
    page = " ".join((ROOT / "docs" / "mr2.md").read_text().replace("−", "-").split())
    assert all(changes)
    assert ", ".join(changes) in page


@pytest.mark.parametrize("name", ["gamma_order", "feature_size"])
def test_the_page_contains_the_printed_tables(name: str) -> None:
    page = (ROOT / "docs" / "mr2.md").read_text().splitlines()
    assert set((HERE / f"{name}.md").read_text().splitlines()) <= set(page)


@pytest.mark.parametrize("method", ["mr2", "feature-norm"])
def test_the_page_matches_the_stress_grid(method: str) -> None:
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


CHOSEN = {
    "mnist1d-end": "tuning",
    "clinc-end": "tuning",
    "digits-end": "digits-tuning",
    "fitted-end": "fitted-choice",
    "plain-end": "plain-choice",
    "mnist1d-seen": "tuning",
    "clinc-seen": "tuning",
}


@pytest.mark.parametrize(("end", "search"), CHOSEN.items())
def test_settings_were_chosen_without_the_test_samples(study, end: str, search: str) -> None:
    plan = study.plans.read_plan(end)
    assert study.plans.read_plan(search)["samples"] == "choice" != plan["samples"]
    for problem in plan["problems"]:
        assert study.plans.plan_methods(plan, problem) == study.selection.choose_settings(search, problem)


@pytest.mark.parametrize(("val_fraction", "hard"), [(0.3, 0.1), (0.0, 0.2)])
def test_held_out_samples_replace_the_test_samples(
    study, monkeypatch: pytest.MonkeyPatch, val_fraction: float, hard: float
) -> None:
    class Run:
        def read_metrics(self) -> list[dict[str, float]]:
            last, final = ({f"{part}_{metric}": value for metric in METRICS} for part, value in PARTS.items())
            return [{}, last, final | {"train_accuracy": 1.0}]

    METRICS, PARTS = study.tables.METRICS, {"val": 0.1, "test": 0.2}
    monkeypatch.setattr(study.training, "temporary_run", lambda settings, seed: contextlib.nullcontext(Run()))
    assert study.run_one({"val_fraction": val_fraction}, 1)["hard"] == hard


def test_an_incomplete_last_line_is_dropped(study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study.plans, "HERE", tmp_path)
    (tmp_path / "plan.jsonl").write_text(json.dumps({"seed": 1}) + '\n{"seed": 2, "ha')
    assert study.plans.read_results("plan") == [{"seed": 1}]
    study.plans.drop_incomplete_line("plan")
    assert (tmp_path / "plan.jsonl").read_text() == '{"seed": 1}\n'


def test_choices_never_see_test_images(study, tmp_path: Path) -> None:
    for i in range(10):
        for part in ("train", "test"):
            image = tmp_path / "images" / part / "cat" / f"{part}{i}.png"
            image.parent.mkdir(parents=True, exist_ok=True)
            image.write_text(part)
    made = study.plans.resolve_source(tmp_path / "images", "choice")
    held_out, trained = (sorted((made / part / "cat").iterdir()) for part in ("test", "train"))
    assert [path.name for path in held_out] == ["train0.png", "train5.png"]
    assert len(trained) == 8
    assert {path.read_text() for path in held_out + trained} == {"train"}


def test_new_samples_were_never_trained_on(study, tmp_path: Path) -> None:
    count = {"train": 200, "test": 4}
    arrays = {f"{part}_x": np.arange(n, dtype=np.float32)[:, None] + n for part, n in count.items()}
    arrays |= {f"{part}_y": np.arange(n) % 2 for part, n in count.items()}
    np.savez(tmp_path / "file.npz", **arrays)
    made = study.plans.resolve_source(tmp_path / "file.npz", "new")
    drawn: set[float] = set()
    for sample_set in study.plans.SAMPLE_SETS.values():
        data = load(f"features:{made}:test_split=new:fraction=0.2:data_seed={sample_set['data_seed']}")
        drawn |= set(data.train.inputs[torch.arange(len(data.train))].flatten().tolist())
    new = set(data.test.inputs[torch.arange(len(data.test))].flatten().tolist())
    assert new == set(arrays["train_x"].flatten().tolist()) - drawn
    assert 80 < len(new) < 160  # three draws of 40 among 200 overlap
    assert study.plans.resolve_source(tmp_path / "file.npz", "end") == tmp_path / "file.npz"
    with pytest.raises(SystemExit, match="no new samples"):
        study.plans.resolve_source(tmp_path, "new")
