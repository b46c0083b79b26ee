"""CDB: weights from the class accuracies after each epoch."""

from pathlib import Path

import pytest
import torch
from method_cases import MOONS, assert_resumes, metrics, moons_run, moons_trained
from training_cases import trained, trained_by_two

from classgap.engine import Run
from classgap.engine.storage.checkpoint import load_checkpoint, load_weights
from classgap.testing import Processes

STEPS = 6  # in an epoch


def trained_for_an_epoch() -> Run:
    run = moons_run("cdb:tau=0.5", val_fraction=0.25)
    run.method.epoch_start(run)
    assert run.method.loss.weight.tolist() == [1.0, 1.0]  # equal in the first epoch
    for batch in run.batches.epoch(0):
        run.method.step(run, batch)
        run.position.after_step()
    run.position.after_epoch()
    run.method.epoch_start(run)
    return run


def test_held_out_samples_are_required(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"cdb .*--val-fraction"):
        moons_trained(tmp_path / "run", "cdb")
    assert not (tmp_path / "run").exists()


def test_weights_follow_the_accuracies() -> None:
    run = trained_for_an_epoch()
    split = run.validation
    correct = [[], []]
    run.model.eval()
    for row in range(len(split)):
        predicted = run.model(torch.as_tensor(split.inputs[torch.tensor([row])])).argmax()
        correct[int(split.targets[row])].append(float(predicted == split.targets[row]))
    powers = [(1 - sum(each) / len(each)) ** 0.5 for each in correct]
    assert powers[1] > powers[0]  # the rare moon
    assert run.method.loss.weight.tolist() == pytest.approx([2 * power / sum(powers) for power in powers])


def test_a_class_without_held_out_samples_takes_the_mean() -> None:
    """A class with a single sample keeps it for training."""
    run = moons_run("cdb:tau=1", data="digits:imbalance=200", model="mlp:width=8", val_fraction=0.2)
    held_out = run.validation.class_counts(10)
    assert (held_out == 0).any()
    run.position.epoch = 1
    run.method.epoch_start(run)
    weight = run.method.loss.weight
    assert weight.isfinite().all()
    assert weight[held_out == 0].tolist() == pytest.approx(
        [float(weight[held_out > 0].mean())] * int((held_out == 0).sum())
    )


def test_tau_0_is_cross_entropy(tmp_path: Path) -> None:
    ours, theirs = (
        moons_trained(tmp_path / name, name, val_fraction=0.25, audit=False) for name in ("cdb:tau=0", "erm")
    )
    assert metrics(ours) == metrics(theirs)
    weights = [load_weights(each.model) for each in (ours, theirs)]
    assert all(torch.equal(tensor, weights[1][name]) for name, tensor in weights[0].items())


def test_stopped_and_resumed(tmp_path: Path) -> None:
    assert_resumes(tmp_path, "cdb", [3, STEPS, 2 * STEPS + 5], val_fraction=0.25)
    ours, theirs = (load_checkpoint(tmp_path / name / "checkpoints" / "last.pt") for name in ("whole", "stopped"))
    assert torch.equal(ours["method"]["loss.weight"], theirs["method"]["loss.weight"])
    assert ours["method"]["loss.weight"].tolist() != [1.0, 1.0]


def test_rare_classes_gain(tmp_path: Path) -> None:
    tail = {"data": "digits:imbalance=50", "model": "mlp:width=32", "epochs": 12, "val_fraction": 0.25, "audit": False}
    plain, balanced = (metrics(moons_trained(tmp_path / name, name, **tail))[-1] for name in ("erm", "cdb"))
    assert balanced["test_balanced"] > plain["test_balanced"] + 0.05


def test_two_processes_weigh_as_one(tmp_path: Path, processes: Processes) -> None:
    settings = {**MOONS, "method": "cdb", "val_fraction": 0.25, "audit": False}
    alone, together = trained(tmp_path / "one", **settings), trained_by_two(processes, tmp_path / "two", **settings)
    ours, theirs = (load_checkpoint(tmp_path / name / "checkpoints" / "last.pt")["method"] for name in ("one", "two"))
    torch.testing.assert_close(ours["loss.weight"], theirs["loss.weight"], rtol=1e-3, atol=1e-3)
    for one, two in zip(metrics(alone), metrics(together), strict=True):
        numbers = {key: value for key, value in one.items() if isinstance(value, float)}
        assert {key: two[key] for key in numbers} == pytest.approx(numbers, rel=1e-3, abs=6e-3)
