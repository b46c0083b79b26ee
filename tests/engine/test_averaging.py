"""Averages of the weights: their values, what is evaluated and saved, resuming, and two processes."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.optim.swa_utils import update_bn
from training_cases import metrics, new_run, stopped_after, trained, trained_by_two

from classgap import Audit
from classgap.engine import Run
from classgap.engine.storage.checkpoint import load_weights
from classgap.testing import Processes

NORMALIZED: dict[str, Any] = {"model": "resnet20:width=4", "epochs": 2, "batch_size": 200}
EMA = {"ema_decay": 0.9}
MOONS: dict[str, Any] = {"data": "two-moons:n_train=512:n_test=200", "model": "mlp:width=8", "epochs": 4}


def weights_of_each_step(run: Run) -> list[dict[str, torch.Tensor]]:
    """Train for all epochs of a stage; return the initial weights and those after each step, in float64."""

    def copied() -> dict[str, torch.Tensor]:
        return {name: tensor.double().clone() for name, tensor in run.model.state_dict().items()}

    seen = [copied()]
    for epoch in range(run.epochs):
        for batch in run.batches.epoch(epoch):
            run.method.step(run, batch)
            run.position.after_step()
            seen.append(copied())
    return seen


def assert_close(weights: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert weights.keys() == expected.keys()
    for name, tensor in weights.items():
        torch.testing.assert_close(tensor.double(), expected[name], rtol=1e-4, atol=1e-5)


def test_ema_of_parameters_and_batch_norm_statistics(tmp_path: Path) -> None:
    directory = trained(tmp_path / "run", audit=False, **NORMALIZED, **EMA)
    average, *steps = weights_of_each_step(new_run(**NORMALIZED))
    assert len(steps) == 10
    for t, weights in enumerate(steps):
        decay = min(0.9, (1 + t) / (10 + t))
        for name, tensor in weights.items():
            # Copy integers: the number of batches that batch norm has seen.
            average[name] = tensor if "num_batches" in name else decay * average[name] + (1 - decay) * tensor
    assert_close(load_weights(directory.model), average)
    assert not torch.allclose(average["fc.weight"], steps[-1]["fc.weight"], atol=1e-3)


def test_the_decay_is_reached_after_the_warmup() -> None:
    run = new_run(ema_decay=0.5, epochs=1)
    average, *steps = weights_of_each_step(run)
    assert len(steps) > 8  # (1 + 8) / (10 + 8) = 0.5
    for t, weights in enumerate(steps):
        decay = min(0.5, (1 + t) / (10 + t))
        average = {name: decay * tensor + (1 - decay) * weights[name] for name, tensor in average.items()}
    assert run.average is not None
    assert_close(run.average.tensors, average)


@pytest.mark.parametrize("monitor", ["last", "hard"])
def test_evaluated_selected_and_saved_weights_are_the_average(monitor: str, tmp_path: Path) -> None:
    settings = {"epochs": 4, "val_fraction": 0.2, "monitor": monitor, "audit": False}
    plain, averaged = trained(tmp_path / "plain", **settings), trained(tmp_path / "ema", ema_decay=0.99, **settings)
    lines = metrics(averaged)
    for one, two in zip(metrics(plain)[:-1], lines[:-1], strict=True):  # training itself does not change
        assert one["loss"] == two["loss"]
        assert one["train_accuracy"] == two["train_accuracy"]
    assert [line["val_accuracy"] for line in metrics(plain)[:-1]] != [line["val_accuracy"] for line in lines[:-1]]
    chosen = lines[(lines[-1]["chosen_epoch"] or 4) - 1]
    audit = Audit.from_file(averaged.val_predictions)  # from the saved weights
    assert audit.overall.accuracy == pytest.approx(chosen["val_accuracy"])
    assert audit.groups["hard"].accuracy == pytest.approx(chosen["val_hard"])


def test_steps_that_fp16_skips_do_not_count() -> None:
    run = new_run(precision="fp16", ema_decay=0.99)
    assert run.average is not None
    before = {name: tensor.clone() for name, tensor in run.average.tensors.items()}
    run.scaler = torch.amp.GradScaler("cpu", init_scale=1e38)
    batch = next(iter(run.batches.epoch(0)))
    run.method.step(run, batch.map(lambda each: each * 1e4 if each.is_floating_point() else each))
    assert run.average.count == 0
    assert all(torch.equal(tensor, before[name]) for name, tensor in run.average.tensors.items())
    run.scaler = torch.amp.GradScaler("cpu", init_scale=1.0)
    run.method.step(run, batch)
    assert run.average.count == 1
    assert not torch.equal(run.average.tensors["1.weight"], before["1.weight"])


def test_without_an_average_the_weights_in_training_are_evaluated() -> None:
    run = new_run(ema_decay=0.99)
    before = {name: tensor.clone() for name, tensor in run.model.state_dict().items()}
    with run.averaged_weights():
        assert all(torch.equal(tensor, before[name]) for name, tensor in run.model.state_dict().items())


def test_the_weights_in_training_return_after_an_evaluation() -> None:
    run = new_run(**NORMALIZED, **EMA)
    run.method.step(run, next(iter(run.batches.epoch(0))))
    before = {name: tensor.clone() for name, tensor in run.model.state_dict().items()}
    with run.averaged_weights():
        assert not torch.equal(run.model.state_dict()["fc.weight"], before["fc.weight"])
    assert all(torch.equal(tensor, before[name]) for name, tensor in run.model.state_dict().items())


def test_the_next_stage_continues_from_the_average(tmp_path: Path) -> None:
    averaged = load_weights(trained(tmp_path / "erm", audit=False, **MOONS, **EMA).model)
    plain = load_weights(trained(tmp_path / "plain", audit=False, **MOONS).model)
    staged = load_weights(trained(tmp_path / "crt", audit=False, method="crt", **MOONS, **EMA).model)
    assert torch.equal(staged["1.weight"], averaged["1.weight"])
    assert not torch.equal(staged["1.weight"], plain["1.weight"])
    assert not torch.equal(staged["3.weight"], averaged["3.weight"])


def assert_resumes(tmp_path: Path, stops: list[int], **settings: Any) -> None:
    settings = {"audit": False, "val_fraction": 0.25, **settings}
    whole = trained(tmp_path / "whole", **settings)
    for steps in stops:
        with stopped_after(steps):
            trained(tmp_path / "stopped", **settings)
    resumed = trained(tmp_path / "stopped", **settings)
    assert metrics(resumed) == metrics(whole)
    for name in ("model", "predictions", *(["val_predictions"] if settings["val_fraction"] else [])):
        assert getattr(resumed, name).read_bytes() == getattr(whole, name).read_bytes()


# 6 steps per epoch: stopped within an epoch, after its last step, at the end of a stage, and in a later stage.
STOPS = {"erm": [4, 8, 9], "crt": [4, 20, 2], "jtt:first=0.5": [4, 8, 9], "sam+mr2": [4, 8, 9]}


@pytest.mark.parametrize("method", STOPS)
def test_interrupted_runs_resume_bit_for_bit(method: str, tmp_path: Path) -> None:
    assert_resumes(tmp_path, STOPS[method], method=method, monitor="hard", **MOONS, **EMA)


def test_interrupted_runs_with_batch_norm_resume_bit_for_bit(tmp_path: Path) -> None:
    assert_resumes(tmp_path, [3, 4], **NORMALIZED, **EMA)


# Stochastic weight averaging


def test_swa_is_the_mean_over_epochs_with_recomputed_batch_norm(tmp_path: Path) -> None:
    settings = {**NORMALIZED, "epochs": 4}
    directory = trained(tmp_path / "run", audit=False, swa_start=0.5, **settings)
    run = new_run(**settings)
    steps = weights_of_each_step(run)[1:]
    ends = [steps[epoch * len(run.batches) - 1] for epoch in (3, 4)]
    expected = {name: (ends[0][name] + ends[1][name]) / 2 for name in ends[0]}
    saved = load_weights(directory.model)
    parameters = [name for name, _ in run.model.named_parameters()]
    assert_close({name: saved[name] for name in parameters}, {name: expected[name] for name in parameters})
    # As torch computes the statistics, over the batches of the last epoch.
    run.model.load_state_dict(saved)
    update_bn([batch.inputs for batch in run.batches.epoch(3)], run.model)
    for name, buffer in run.model.named_buffers():
        torch.testing.assert_close(saved[name], buffer, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(saved["bn1.running_var"].double(), expected["bn1.running_var"], rtol=1e-3)


def test_swa_does_not_change_training(tmp_path: Path) -> None:
    settings = {**NORMALIZED, "epochs": 4, "val_fraction": 0.2, "audit": False}
    plain, averaged = trained(tmp_path / "plain", **settings), trained(tmp_path / "swa", swa_start=0.5, **settings)
    lines = list(zip(metrics(plain)[:-1], metrics(averaged)[:-1], strict=True))
    assert all(one["loss"] == two["loss"] for one, two in lines)
    assert lines[:2] == [(one, one) for one, _ in lines[:2]]  # epochs before the average evaluate the weights
    audit = Audit.from_file(averaged.val_predictions)
    assert audit.overall.accuracy == pytest.approx(lines[-1][1]["val_accuracy"])


def test_swa_lr_is_the_rate_of_the_averaged_epochs(tmp_path: Path) -> None:
    lines = metrics(trained(tmp_path / "run", epochs=4, swa_start=0.5, swa_lr=0.02, schedule="constant", audit=False))
    assert [line["lr"] for line in lines[:-1]] == pytest.approx([0.05, 0.05, 0.02, 0.02])
    run = new_run(epochs=4, swa_start=0.5, swa_lr=0.02)
    first = 2 * len(run.batches)
    assert run.schedule.factor(first - 1) > 0.5  # the cosine has not reached half of its length
    assert run.schedule.factor(first) == run.schedule.factor(4 * len(run.batches) - 1) == pytest.approx(0.4)


def test_a_frozen_encoder_keeps_its_batch_norm_statistics(tmp_path: Path) -> None:
    settings = {**NORMALIZED, "epochs": 3, "swa_start": 0.4, "audit": False}
    encoder = load_weights(trained(tmp_path / "erm", **settings).model)
    staged = load_weights(trained(tmp_path / "crt", method="crt:fraction=1", **settings).model)
    for name, tensor in staged.items():
        assert torch.equal(tensor, encoder[name]) == (name not in ("fc.weight", "fc.bias"))


@pytest.mark.parametrize(
    ("settings", "facts"),
    [
        ({"epochs": 3, "swa_start": 0.75}, "1 of the 3 epochs of stage train"),
        ({"epochs": None, "max_steps": 20, "swa_start": 0.5}, "1 of the 2 epochs"),
        ({"epochs": 8, "swa_start": 0.5, "method": "crt:fraction=0.1"}, "1 of the 1 epochs of stage re-training"),
    ],
)
def test_an_average_of_one_epoch_is_rejected(settings: dict[str, Any], facts: str) -> None:
    with pytest.raises(ValueError, match=facts):
        new_run(**settings)


@pytest.mark.parametrize("method", ["erm", "crt:fraction=0.5", "jtt:first=0.5"])
def test_interrupted_swa_resumes_bit_for_bit(method: str, tmp_path: Path) -> None:
    stops = {"erm": [4, 11, 6], "crt:fraction=0.5": [22, 2, 4], "jtt:first=0.5": [11, 1, 14]}[method]
    assert_resumes(tmp_path, stops, method=method, monitor="hard", swa_start=0.4, swa_lr=0.03, **MOONS)


@pytest.mark.parametrize("val_fraction", [0.0, 0.25])
def test_interrupted_swa_with_batch_norm_resumes_bit_for_bit(val_fraction: float, tmp_path: Path) -> None:
    settings = {**NORMALIZED, "epochs": 4, "swa_start": 0.4, "val_fraction": val_fraction, "micro_batches": 2}
    assert_resumes(tmp_path, [6, 6, 1], **settings)


def _averages_of_two() -> dict[str, torch.Tensor]:
    run = new_run(**NORMALIZED, **EMA)
    for batch in run.batches.epoch(0):
        run.method.step(run, batch)
        run.position.after_step()
    with run.averaged_weights():
        return {name: tensor.clone() for name, tensor in run.model.state_dict().items()}


def test_processes_have_the_same_average(processes: Processes) -> None:
    first, second = processes.run(_averages_of_two)
    assert all(torch.equal(tensor, second[name]) for name, tensor in first.items())


def assert_two_processes_match_one(processes: Processes, tmp_path: Path, **settings: Any) -> None:
    """Compare a network without batch norm, which would use the statistics of each process's samples."""
    settings = {"epochs": 4, "val_fraction": 0.2, "monitor": "hard", "audit": False, **settings}
    one, two = trained(tmp_path / "one", **settings), trained_by_two(processes, tmp_path / "two", **settings)
    for alone, together in zip(metrics(one), metrics(two), strict=True):
        numbers = {key: value for key, value in alone.items() if isinstance(value, float)}
        assert {key: together[key] for key in numbers} == pytest.approx(numbers, rel=1e-3, abs=4e-3)
    ours, theirs = load_weights(one.model), load_weights(two.model)
    for name, tensor in ours.items():
        torch.testing.assert_close(tensor, theirs[name], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("average", [{"ema_decay": 0.95}, {"swa_start": 0.5, "swa_lr": 0.03}])
def test_two_processes_average_as_one(average: dict[str, float], tmp_path: Path, processes: Processes) -> None:
    assert_two_processes_match_one(processes, tmp_path, **average)


@pytest.mark.parametrize("average", [EMA, {"swa_start": 0.0}])
def test_two_processes_predict_with_the_saved_average(
    average: dict[str, float], tmp_path: Path, processes: Processes
) -> None:
    """Evaluate the stored samples again in one process: both processes had the buffers that were saved."""
    settings = {**NORMALIZED, "val_fraction": 0.2, **average}
    directory = trained_by_two(processes, tmp_path / "run", audit=False, **settings)
    run = new_run(**settings)
    run.model.load_state_dict(load_weights(directory.model))
    assert run.validation is not None
    scores = run.scores(run.validation)
    stored = load_weights(directory.val_predictions)["logits"]
    torch.testing.assert_close(stored, scores.logits_NK, rtol=1e-4, atol=1e-4)
    assert metrics(directory)[-2]["val_accuracy"] == pytest.approx(scores.accuracies()["accuracy"])
