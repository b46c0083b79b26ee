"""DRoP: measured errors, quotas, draws, and the fresh start."""

from pathlib import Path
from typing import Any

import pytest
import torch
from method_cases import MOONS, assert_resumes, metrics, moons_run, moons_trained
from training_cases import trained, trained_by_two

from classgap.engine import Run
from classgap.engine.storage.checkpoint import load_checkpoint
from classgap.testing import Processes


def measured(method: str = "drop", **settings: Any) -> Run:
    """Train the first stage and set up the second, as the engine does."""
    run = moons_run(method, **settings)
    run.initial = {name: tensor.clone() for name, tensor in run.model.state_dict().items()}
    for epoch in range(run.epochs):
        run.position.epoch = epoch
        for batch in run.batches.epoch(epoch):
            run.method.step(run, batch)
            run.position.after_step()
    run.errors = class_errors(run)
    run.end_stage()
    run.position.after_stage()
    run.begin_stage()
    return run


def class_errors(run: Run) -> list[tuple[int, int]]:
    """Errors and samples of each class, sample by sample, on the samples that DRoP measures."""
    split = run.train if run.validation is None else run.validation
    run.model.eval()
    found = [[0, 0] for _ in range(run.num_classes)]
    for row in range(len(split)):
        label = int(split.targets[row])
        predicted = int(run.model(torch.as_tensor(split.inputs[torch.tensor([row])])).argmax())
        found[label][0] += predicted != label
        found[label][1] += 1
    run.model.train()
    return [(wrong, count) for wrong, count in found]


def expected_quotas(run: Run, density: float, smoothing: float) -> list[int]:
    """Solve Σ N_k min(1, s e_k) = d N for s by bisection."""
    errors = [(wrong + smoothing) / (count + 2 * smoothing) for wrong, count in run.errors]
    counts = run.train_counts.tolist()
    low, high = 0.0, 1e9
    for _ in range(200):
        scale = (low + high) / 2
        total = sum(n * min(1.0, scale * error) for n, error in zip(counts, errors, strict=True))
        low, high = (scale, high) if total < density * sum(counts) else (low, scale)
    return [max(1, int(n * min(1.0, low * error) + 0.5)) for n, error in zip(counts, errors, strict=True)]


@pytest.mark.parametrize("held_out", [0.0, 0.25])
@pytest.mark.parametrize(("density", "smoothing"), [(0.5, 1.0), (0.2, 0.1)])
def test_quotas_follow_the_errors(held_out: float, density: float, smoothing: float) -> None:
    run = measured(f"drop:density={density}:smoothing={smoothing}", val_fraction=held_out)
    assert run.errors[1][0] / run.errors[1][1] > run.errors[0][0] / run.errors[0][1]
    assert run.method.quotas.tolist() == pytest.approx(expected_quotas(run, density, smoothing), abs=1)
    density_of = run.method.quotas / run.train_counts
    assert density_of[1] > density_of[0]


def test_each_epoch_draws_new_samples_by_the_quotas() -> None:
    run = measured()
    first, second = run.batches.order(0), run.batches.order(1)
    for rows in (first, second):
        assert torch.equal(run.train.targets[rows].bincount(), run.method.quotas)
        assert len(rows.unique()) == len(rows)
    assert set(first.tolist()) != set(second.tolist())


def test_one_subset_as_in_the_paper() -> None:
    run = measured("drop:redraw=no")
    first, second = run.batches.order(0), run.batches.order(1)
    assert torch.equal(run.train.targets[first].bincount(), run.method.quotas)
    assert set(first.tolist()) == set(second.tolist())
    assert first.tolist() != second.tolist()


def test_the_second_training_starts_where_the_first_did() -> None:
    run = measured()
    assert all(torch.equal(tensor, run.initial[name]) for name, tensor in run.model.state_dict().items())
    assert not any(state for state in run.optimizer.state.values())


def test_hard_classes_gain(tmp_path: Path) -> None:
    settings = {"val_fraction": 0.25, "epochs": None, "max_steps": 60, "audit": False}
    plain = metrics(moons_trained(tmp_path / "erm", "erm", **settings))
    pruned = metrics(moons_trained(tmp_path / "drop", "drop:density=0.1", **settings))
    # 60 steps of 64 samples from 384, then from 38.
    assert [line["stage"] for line in pruned[:-1]] == ["measure errors"] * 10 + ["train"] * 60
    assert pruned[10]["kept"] == pytest.approx(0.1 * 384, abs=2)
    assert pruned[-1]["test_worst"] > plain[-1]["test_worst"] + 0.3


@pytest.mark.parametrize("redraw", ["yes", "no"])
def test_stopped_in_each_training_and_between_them(redraw: str, tmp_path: Path) -> None:
    # 18 steps of the first training, then 3 per epoch.
    assert_resumes(tmp_path, f"drop:redraw={redraw}", [4, 18, 19, 22], val_fraction=0.25)
    ours, theirs = (load_checkpoint(tmp_path / name / "checkpoints" / "last.pt") for name in ("whole", "stopped"))
    assert torch.equal(ours["method"]["quotas"], theirs["method"]["quotas"])
    assert ours["method"]["quotas"].all()


def test_two_processes_use_the_same_quotas(tmp_path: Path, processes: Processes) -> None:
    settings = {**MOONS, "method": "drop", "val_fraction": 0.25, "audit": False}
    alone, together = trained(tmp_path / "one", **settings), trained_by_two(processes, tmp_path / "two", **settings)
    ours, theirs = (load_checkpoint(tmp_path / name / "checkpoints" / "last.pt")["method"] for name in ("one", "two"))
    assert torch.equal(ours["quotas"], theirs["quotas"])
    for one, two in zip(metrics(alone), metrics(together), strict=True):
        numbers = {key: value for key, value in one.items() if isinstance(value, float)}
        assert {key: two[key] for key in numbers} == pytest.approx(numbers, rel=1e-3, abs=6e-3)


@pytest.mark.parametrize(
    ("method", "settings", "fact"),
    [
        ("drop", {"sampler": "class-balanced"}, "sampler must be"),
        ("drop:density=0", {}, "density must be"),
        ("drop:density=1.5", {}, "density must be"),
        ("drop:first=0", {}, "first must be"),
        ("drop:smoothing=-1", {}, "smoothing must be"),
        ("drop+mr2", {}, "do not compose"),
    ],
)
def test_invalid_settings_are_rejected(method: str, settings: dict[str, Any], fact: str) -> None:
    with pytest.raises(ValueError, match=fact):
        moons_run(method, **settings)
