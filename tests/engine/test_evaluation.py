"""Passes over a split: how much of it is held at a time, and what comes out."""

import resource
from pathlib import Path

import pytest
import torch
from training_cases import new_run

from classgap.data.dataset import Dataset, Split
from classgap.data.splits import hold_out
from classgap.engine import Run, RunDirectory, TrainConfig
from classgap.engine.defaults import resolve_config
from classgap.engine.storage.artifacts import write_artifacts
from classgap.testing import Processes
from forked import run_forked


def memory_of_passes(method: str, folder: Path) -> float:
    """Return the megabytes that the passes over the training set and writing all predictions add."""
    # 3,000 classes and 40,000 training samples: logits of all of them would take 480 MB.
    targets = torch.arange(40_000) % 3_000
    train = Split.from_arrays(torch.randn(40_000, 4), targets)
    test = Split.from_arrays(torch.randn(3_000, 4), targets[:3_000])
    data = Dataset("made", train, test, tuple(map(str, range(3_000))), "vector", (4,))
    config = TrainConfig(data="made", model="mlp:width=8", method=method, epochs=2, val_fraction=0.1, audit=False)
    run = Run(resolve_config(config, data), data, torch.device("cpu"))
    next(run.iterate_outputs(data.test))  # what the first forward pass loads
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run.method.epoch_start(run)
    run.method.stage_end(run)
    if method == "erm":
        directory = RunDirectory(folder / "run")
        directory.begin(run.config, {})
        write_artifacts(run, directory, None)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1000


@pytest.mark.parametrize("method", ["erm", "jtt", "fair-dro"])
def test_of_a_training_set_no_logits_are_kept(method: str, tmp_path: Path) -> None:
    # Logits of the test set and of the held-out samples are stored, one after the other: 36 MB, joined and written.
    assert run_forked(memory_of_passes, method, tmp_path) < (200 if method == "erm" else 60)


def test_a_pass_leaves_every_layer_in_the_mode_that_it_had() -> None:
    run = new_run(data="digits:fraction=0.1")
    run.model.train()
    next(run.model.children()).eval()  # a frozen part of a model that trains
    run.method.eval()
    before = [module.training for part in (run.model, run.method) for module in part.modules()]
    assert set(before) == {True, False}
    run.predictions(run.data.test)
    assert [module.training for part in (run.model, run.method) for module in part.modules()] == before


def batch_sizes() -> list[int]:
    """How many samples a pass over the test set sends through the network at a time."""
    run = new_run(batch_size=64, micro_batches=4, data="digits:fraction=0.1")
    seen: list[int] = []
    run.model.register_forward_hook(lambda model, inputs, output: seen.append(len(inputs[0])))
    assert len(run.predictions(run.data.test).classes_N) == len(run.data.test)
    return seen


def test_a_pass_has_the_batches_of_training(processes: Processes) -> None:
    assert max(batch_sizes()) == 64 // 4
    for seen in processes.run(batch_sizes):
        assert max(seen) == 64 // 4 // 2


def passes() -> list[torch.Tensor]:
    run = new_run(data="digits:fraction=0.2")
    few = hold_out(run.train, 0.01, 0, 10)[1].subset(torch.tensor([3]))  # one sample for two processes
    scores = run.scores(run.data.test, features=True)
    predicted = [run.predictions(split).classes_N for split in (run.data.test, few)]
    return [scores.logits_NK, *predicted, scores.features_ND, scores.targets_N, run.scores(few).logits_NK]


def test_two_processes_see_the_same_samples_as_one(processes: Processes) -> None:
    alone = passes()
    run = new_run(data="digits:fraction=0.2")
    inputs = run.data.test.inputs[torch.arange(len(run.data.test))].float() / 255
    mean, std = (torch.tensor(each)[:, None, None] for each in (run.mean, run.std))
    torch.testing.assert_close(alone[0], run.model.eval()((inputs - mean) / std).detach())
    assert torch.equal(alone[1], alone[0].argmax(dim=1))
    for together in processes.run(passes):
        for one, two in zip(alone, together, strict=True):
            torch.testing.assert_close(torch.as_tensor(two), one)
