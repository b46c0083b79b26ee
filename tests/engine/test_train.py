"""The engine matches a hand-written loop and is reproducible."""

import json
import time
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from training_cases import config, metrics, new_run, trained

from classgap import Audit
from classgap.data.batch import Batch
from classgap.engine import NonFiniteLossError, Run, TrainConfig, train
from classgap.engine.logging.progress import Display
from classgap.engine.storage.checkpoint import load_checkpoint, load_weights
from classgap.engine.train import choose_device
from classgap.engine.trainer import Trainer
from classgap.methods import Method
from classgap.models import build


def test_run_directory_contents(tmp_path: Path) -> None:
    directory = trained(tmp_path / "run", audit=True)
    names = {each.name for each in directory.path.iterdir()}
    assert names == {
        *("config.yaml", "env.json", "metrics.jsonl", "checkpoints", "predictions.safetensors"),
        *("data.json", "preprocessing.json", "checksums.json", "audit.json", "report.html"),
    }
    lines = metrics(directory)
    assert [line.get("epoch") for line in lines] == [1, 2, 3, None]
    assert lines[-1]["final"] is True
    audit = Audit.load(directory.audit)
    assert lines[-1]["test_accuracy"] == pytest.approx(audit.overall.accuracy)
    assert lines[-1]["test_hard"] == pytest.approx(audit.groups["hard"].accuracy)
    assert lines[-1]["test_worst"] == pytest.approx(min(entry.accuracy for entry in audit.classes))
    assert json.loads(directory.environment.read_text())["processes"] == 1


def test_results_depend_on_the_seed_only(tmp_path: Path) -> None:
    first, second = (metrics(trained(tmp_path / name)) for name in ("a", "b"))
    assert first == second
    assert metrics(trained(tmp_path / "c", seed=1)) != first


def test_matches_a_hand_written_loop(tmp_path: Path) -> None:
    settings = {
        "weight_decay": 1e-3,
        "momentum": 0.8,
        "nesterov": True,
        "warmup_epochs": 1.0,
        "clip_grad": 0.5,
        "seed": 3,
    }
    directory = trained(tmp_path / "run", **settings)
    run = new_run(**settings)  # for its data and sample order
    torch.manual_seed(3)
    model = build("mlp:width=16", num_classes=10, input_shape=run.data.shape)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.8, nesterov=True, weight_decay=1e-3)
    steps = len(run.batches)
    warm = torch.optim.lr_scheduler.LinearLR(optimizer, 1 / steps, total_iters=steps - 1)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 2 * steps)
    schedule = torch.optim.lr_scheduler.SequentialLR(optimizer, [warm, cosine], [steps])
    for epoch in range(3):
        for batch in run.batches.epoch(epoch):
            optimizer.zero_grad()
            F.cross_entropy(model(batch.inputs), batch.labels).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            schedule.step()
    found = load_weights(directory.model)
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(found[name], tensor, rtol=1e-5, atol=1e-6)


def test_micro_batches_match_the_full_batch(tmp_path: Path) -> None:
    whole, parts = (load_weights(trained(tmp_path / f"{n}", micro_batches=n).model) for n in (1, 5))
    for name, tensor in whole.items():
        torch.testing.assert_close(parts[name], tensor, rtol=1e-4, atol=1e-6)


def test_steps_may_end_within_an_epoch(tmp_path: Path) -> None:
    run = new_run()
    directory = trained(tmp_path / "run", epochs=None, max_steps=len(run.batches) + 2)
    assert [line.get("epoch") for line in metrics(directory)] == [1, 2, None]
    assert load_checkpoint(directory.last)["position"]["updates"] == len(run.batches) + 2


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_trains(precision: str, tmp_path: Path) -> None:
    final = metrics(trained(tmp_path / "run", precision=precision, epochs=5))[-1]
    assert final["test_accuracy"] > 0.7


IMAGES = {"model": "resnet20", "max_steps": 2, "epochs": None, "batch_size": 16}


def assert_close_to_plain(tmp_path: Path, **settings) -> None:
    plain = load_weights(trained(tmp_path / "plain", **IMAGES).model)
    other = load_weights(trained(tmp_path / "other", **IMAGES, **settings).model)
    for name, tensor in plain.items():
        torch.testing.assert_close(other[name], tensor, rtol=1e-2, atol=1e-3)


def test_channels_last_matches_the_default_layout(tmp_path: Path) -> None:
    assert_close_to_plain(tmp_path, channels_last=True)


@pytest.mark.slow
def test_compiled_network_matches(tmp_path: Path) -> None:
    assert_close_to_plain(tmp_path, compile=True)


def test_monitor_selects_the_best_epoch_on_held_out_samples(tmp_path: Path) -> None:
    directory = trained(tmp_path / "run", val_fraction=0.2, monitor="hard", epochs=6, lr=0.3)
    *epochs, final = metrics(directory)
    values = [(line["val_hard"], line["val_accuracy"]) for line in epochs]
    assert final["chosen_epoch"] == 1 + values.index(max(values))
    state = load_checkpoint(directory.last)["model"]
    same = all(torch.equal(state[name], tensor) for name, tensor in load_weights(directory.model).items())
    assert same == (final["chosen_epoch"] == 6)


def test_wise_ft_interpolates_initial_and_trained_weights(tmp_path: Path) -> None:
    first = new_run().model.state_dict()
    last = load_weights(trained(tmp_path / "last").model)
    between = load_weights(trained(tmp_path / "between", wise_ft_alpha=0.6).model)
    for name, tensor in between.items():
        torch.testing.assert_close(tensor, 0.4 * first[name] + 0.6 * last[name])


def test_held_out_samples_are_not_trained_on(tmp_path: Path) -> None:
    run = new_run(val_fraction=0.25)
    assert run.validation is not None
    assert not set(run.train.index.tolist()) & set(run.validation.index.tolist())
    assert len(run.train) + len(run.validation) == len(run.data.train)
    fraction = run.validation.class_counts(10) / run.data.train.class_counts(10)
    assert fraction.min() > 0.2
    assert fraction.max() < 0.3


def test_split_seed_selects_the_held_out_samples() -> None:
    def held_out(**seeds: int) -> list[int]:
        validation = new_run(val_fraction=0.25, **seeds).validation
        assert validation is not None
        return validation.index.tolist()

    assert held_out(seed=3, split_seed=7) == held_out(seed=4, split_seed=7) == held_out(seed=7)
    assert held_out(seed=3) != held_out(seed=7)


def test_folds_hold_out_different_samples() -> None:
    runs = [new_run(val_fraction=0.25, val_fold=fold) for fold in range(4)]
    held_out = [index for run in runs if run.validation is not None for index in run.validation.index.tolist()]
    assert len(set(held_out)) == len(held_out) > 0.98 * len(runs[0].data.train)
    for run in runs:
        assert run.validation is not None
        assert not set(run.train.index.tolist()) & set(run.validation.index.tolist())


def test_non_finite_loss_stops_the_run(tmp_path: Path) -> None:
    with pytest.raises(NonFiniteLossError, match=r"epoch \d, step \d+: .*logits") as stop:
        trained(tmp_path / "run", lr=1e30)
    assert len(stop.value.samples) == 64
    record = json.loads((tmp_path / "run" / "failure.json").read_text())
    assert record["samples"] == stop.value.samples
    state = load_checkpoint(tmp_path / "run" / "checkpoints" / "last.pt")
    assert all(tensor.isfinite().all() for tensor in state["model"].values())


def test_features_without_finite_squares_stop_the_run(tmp_path: Path) -> None:
    """A diverging network may have finite logits while its head shrinks as its features grow."""
    run = new_run(method="mr2")
    *_, hidden, _, head = run.model
    with torch.no_grad():
        for parameter in hidden.parameters():
            parameter *= 1e25
        head.weight *= 1e-25
    batch = next(iter(run.batches.epoch(0)))
    with pytest.raises(NonFiniteLossError, match=r"norm of the features \(infinite\)"):
        run.backward(run.method.objective, batch)


def test_an_error_on_one_process_does_not_wait_for_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other processes may not have failed; only losses raise InvalidBatchError on all of them."""
    run = new_run()

    def objective(run: Run, batch: object) -> torch.Tensor:
        raise ValueError("only here")

    patched = "classgap.engine.objective.all_gather_object"
    monkeypatch.setattr(patched, lambda value: pytest.fail("waits for the others"))
    with pytest.raises(ValueError, match="only here"):
        run.backward(objective, next(iter(run.batches.epoch(0))))


def test_a_finished_run_is_kept_unless_overwritten(tmp_path: Path) -> None:
    out = tmp_path / "run"
    trained(out)
    before = (out / "metrics.jsonl").stat().st_mtime_ns
    assert train(config(out=out), quiet=True).was_finished
    with pytest.raises(ValueError, match=r"epochs .*3.*4"):
        trained(out, epochs=4)
    assert (out / "metrics.jsonl").stat().st_mtime_ns == before
    assert not train(config(out=out, epochs=1), quiet=True, overwrite=True).was_finished
    assert len(metrics(out)) == 2


@pytest.mark.parametrize("wrong", [{"data": "digit"}, {"model": "resnet2"}, {"method": "mr3"}, {"mix": "mixdown"}])
def test_typos_write_nothing(wrong: dict, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"did you mean|choose from"):
        trained(tmp_path / "run", **wrong)
    assert not (tmp_path / "run").exists()


def test_overwrite_with_an_invalid_setting_keeps_the_run(tmp_path: Path) -> None:
    trained(tmp_path / "run")
    with pytest.raises(ValueError, match="did you mean"):
        train(config(out=tmp_path / "run", method="mr3"), quiet=True, overwrite=True)
    assert len(metrics(tmp_path / "run")) == 4


def test_a_run_killed_after_its_last_step_takes_no_more_steps(tmp_path: Path, monkeypatch) -> None:
    settings = {"epochs": None, "max_steps": 20, "save_every": 0.0}  # an epoch has 14 steps
    whole = metrics(trained(tmp_path / "whole", **settings))
    end_epoch = Trainer._end_epoch

    def killed_in_second_epoch(trainer: Trainer, display: Display) -> dict:
        if trainer.epochs_done:
            raise KeyboardInterrupt
        return end_epoch(trainer, display)

    with monkeypatch.context() as context:
        context.setattr(Trainer, "_end_epoch", killed_in_second_epoch)
        with pytest.raises(KeyboardInterrupt):
            trained(tmp_path / "killed", **settings)
    assert load_checkpoint(tmp_path / "killed" / "checkpoints" / "last.pt")["position"]["updates"] == 20
    assert metrics(trained(tmp_path / "killed", **settings)) == whole


def test_throughput_is_measured_per_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = Method.step

    def slow_at_first(method: Method, run: Run, batch: Batch) -> None:
        time.sleep(0.03 if run.position.epoch == 0 else 0)
        step(method, run, batch)

    monkeypatch.setattr(Method, "step", slow_at_first)
    directory = trained(tmp_path / "run")
    samples = sum(len(batch) for batch in new_run().batches.epoch(0))
    times = [line["timing"] for line in directory.read_metrics()[:-1]]
    for each in times:
        assert each["samples_per_second"] * each["seconds"] == pytest.approx(samples, rel=0.1)
    assert times[2]["samples_per_second"] > 2 * times[0]["samples_per_second"]


def test_milestones_are_fractions_of_the_steps() -> None:
    run = new_run(epochs=None, max_steps=20, schedule="step", milestones=(0.5, 0.75))
    assert [run.schedule.factor(update) for update in (9, 10, 14, 15)] == pytest.approx([1, 0.1, 0.1, 0.01])


def test_resuming_fills_missing_settings_from_the_stored_run(tmp_path: Path) -> None:
    out = tmp_path / "run"
    trained(out)
    (out / "checksums.json").unlink()
    (out / "metrics.jsonl").write_text("")  # as if killed at the very end
    train(TrainConfig(data="digits", out=out), quiet=True)
    assert len(metrics(out)) == 1  # the checkpoint contains its three epochs


def test_tensorboard_metrics(tmp_path: Path) -> None:
    event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    directory = trained(tmp_path / "run", tensorboard=True)
    events = event_accumulator.EventAccumulator(str(directory.path / "tensorboard"))
    events.Reload()
    losses = [line["loss"] for line in metrics(directory)[:-1]]
    assert [event.value for event in events.Scalars("loss")] == pytest.approx(losses)


@pytest.mark.parametrize("name", ["meta", "xla", "cpu:-1", "gpu"])
def test_devices_that_cannot_train_are_named(name: str) -> None:
    with pytest.raises(ValueError, match=f"device.*{name}"):
        choose_device(name)
    assert choose_device("cpu").type == "cpu"
