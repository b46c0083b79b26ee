"""Just Train Twice: the error set, its copies, and the fresh start."""

from pathlib import Path
from typing import Any

import pytest
import torch
from method_cases import assert_resumes, copied, metrics, moons_run, moons_trained

from classgap import methods
from classgap.engine.storage.checkpoint import load_checkpoint, load_weights


def find_errors(run) -> None:
    """The first training, as the engine does it."""
    for epoch in range(run.epochs):
        run.position.epoch = epoch
        run.method.epoch_start(run)
        for batch in run.batches.epoch(epoch):
            if run.position.updates < run.updates:
                run.method.step(run, batch)
                run.position.after_step()
    run.method.stage_end(run)


def test_errors_appear_as_often_as_published() -> None:
    run = moons_run("jtt:copies=3")
    run.method.wrong = torch.tensor([False] * 10)
    run.method.wrong[[2, 7]] = True
    run.position.stage = 1
    run.method.stage_start(run)
    rows = run.order(0)
    assert len(rows) == 16
    assert torch.bincount(rows).tolist() == [1, 1, 4, 1, 1, 1, 1, 4, 1, 1]


def test_clean_errors_are_errors_of_the_first_network() -> None:
    run = moons_run("jtt")
    find_errors(run)
    inputs = torch.as_tensor(run.train.inputs[torch.arange(len(run.train))])
    wrong = run.model.eval()(inputs).argmax(dim=1) != run.train.targets
    assert wrong.any()
    assert torch.equal(run.method.wrong, wrong)
    assert run.train.targets[wrong].double().mean() > 0.9  # nearly all on the rare moon


def test_online_errors_are_made_before_each_update() -> None:
    run, plain = moons_run("jtt:errors=online:first=0.67"), moons_run("erm", epochs=2)
    find_errors(run)
    expected = torch.zeros(len(run.train), dtype=torch.bool)
    for epoch in range(2):
        for batch in plain.batches.epoch(epoch):
            if epoch == 1:
                expected[batch.rows] = plain.model(batch.inputs).argmax(dim=1) != batch.labels
            plain.method.step(plain, batch)
            plain.position.after_step()
    assert expected.any()
    assert torch.equal(run.method.wrong, expected)


def test_online_errors_of_an_epoch_cut_short_are_completed_by_the_epoch_before() -> None:
    """11 updates of 8 an epoch: the second epoch comes by 192 of 512 samples."""
    steps = {"epochs": None, "max_steps": 11}
    run, plain = moons_run("jtt:errors=online:first=1", **steps), moons_run("erm", **steps)
    find_errors(run)
    last_visit: dict[int, bool] = {}
    for batch in [*plain.batches.epoch(0), *plain.batches.epoch(1)][:11]:
        wrong = plain.model(batch.inputs).argmax(dim=1) != batch.labels
        last_visit |= dict(zip(batch.rows.tolist(), wrong.tolist(), strict=True))
        plain.method.step(plain, batch)
        plain.position.after_step()
    assert len(last_visit) == len(run.train) == 512
    expected = torch.tensor([last_visit[row] for row in range(512)])
    reached = torch.zeros(512, dtype=torch.bool)
    reached[run.batches.order(1)[:192]] = True
    assert (expected & ~reached).any()
    assert torch.equal(run.method.wrong, expected)


def test_the_second_training_starts_where_the_first_did() -> None:
    run = moons_run("jtt")
    before = copied(run.model)
    find_errors(run)
    assert not torch.equal(run.model.state_dict()["1.weight"], before["1.weight"])
    run.position.after_stage()
    run.begin_stage()
    assert all(torch.equal(tensor, before[name]) for name, tensor in run.model.state_dict().items())
    assert not any(state for state in run.optimizer.state.values())
    assert len(run.batches.order) == len(run.train) + 20 * int(run.method.wrong.sum())


def test_without_copies_of_errors_it_is_plain_training(tmp_path: Path) -> None:
    twice, plain = (moons_trained(tmp_path / name, name) for name in ("jtt:copies=0", "erm"))
    assert [line["stage"] for line in metrics(twice)[:-1]] == ["find errors", "train", "train", "train"]
    assert metrics(twice)[-1] == metrics(plain)[-1]
    ours, theirs = load_weights(twice.model), load_weights(plain.model)
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())


def test_errors_gain(tmp_path: Path) -> None:
    plain = metrics(moons_trained(tmp_path / "erm", "erm"))
    twice = metrics(moons_trained(tmp_path / "jtt", "jtt"))
    assert twice[1]["errors"] == twice[3]["errors"] > 0
    assert twice[-1]["test_worst"] > plain[-1]["test_worst"] + 0.2


@pytest.mark.parametrize("errors", ["clean", "online"])
def test_stopped_in_each_training_and_between_them(errors: str, tmp_path: Path) -> None:
    method = f"jtt:errors={errors}:copies=4"
    # 8 steps of the first training, then three longer epochs.
    whole = assert_resumes(tmp_path, method, [3, 8, 9, 20])
    ours, theirs = (load_checkpoint(tmp_path / name / "checkpoints" / "last.pt") for name in ("whole", "stopped"))
    assert torch.equal(ours["method"]["wrong"], theirs["method"]["wrong"])
    assert ours["method"]["wrong"].any()
    assert metrics(whole)[0]["stage"] == "find errors"


def test_stopped_in_an_epoch_that_is_cut_short(tmp_path: Path) -> None:
    assert_resumes(tmp_path, "jtt:errors=online:first=1:copies=2", [9, 11, 12], epochs=None, max_steps=11)


def test_two_epochs_are_enough_for_online_errors(tmp_path: Path) -> None:
    lines = metrics(moons_trained(tmp_path / "run", "jtt:errors=online", epochs=2))
    assert [line["stage"] for line in lines[:-1]] == ["find errors", "train", "train"]
    assert lines[1]["errors"] == round((1 - lines[0]["train_accuracy"]) * 512) > 0


@pytest.mark.parametrize(
    ("method", "settings", "fact"),
    [
        ("jtt", {"sampler": "class-balanced"}, "sampler must be"),
        ("jtt:errors=online", {"mix": "mixup:alpha=0.2"}, "mix must be none"),
        ("jtt:errors=online", {"epochs": None, "max_steps": 37}, "8 steps .* has 7 .* at least 40"),
        ("jtt:errors=lazy", {}, "'clean', 'online'"),
        ("jtt:first=0", {}, "first must be"),
    ],
)
def test_invalid_settings_are_rejected(method: str, settings: dict[str, Any], fact: str) -> None:
    with pytest.raises(ValueError, match=fact):
        moons_run(method, **settings)


def _online_errors_of_two() -> torch.Tensor:
    run = moons_run("jtt:errors=online")
    find_errors(run)
    return run.method.wrong


def test_two_processes_find_the_same_errors(processes) -> None:
    first, second = processes.run(_online_errors_of_two)
    assert torch.equal(first, second)
    assert torch.equal(first, _online_errors_of_two())


def test_the_length_of_the_first_training() -> None:
    stages = methods.build("jtt:first=0.5", num_classes=2, num_samples=10).stages()
    assert [stage.length(40) for stage in stages] == [20, 40]
