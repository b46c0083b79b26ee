"""The engine does what a hand-written loop would do, and the same again."""

import json
import time
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from training_cases import config, metrics, new_run, trained

from classgap import Audit
from classgap.data.batches import Batch
from classgap.engine import NonFiniteLossError, Run, TrainConfig, train
from classgap.engine.fit import Fit
from classgap.engine.logging.progress import Display
from classgap.engine.storage.checkpoint import load_checkpoint, load_weights
from classgap.methods import Method
from classgap.models import build


def test_a_run_directory_holds_what_is_promised(tmp_path: Path) -> None:
    directory = trained(tmp_path / "run")
    names = {each.name for each in directory.path.iterdir()}
    assert names == {
        *("config.yaml", "env.json", "metrics.jsonl", "checkpoints", "predictions.safetensors"),
        *("audit.json", "report.html"),
    }
    lines = metrics(directory)
    assert [line.get("epoch") for line in lines] == [1, 2, 3, None]
    assert lines[-1]["final"] is True
    audit = Audit.load(directory.audit)
    assert lines[-1]["test_accuracy"] == pytest.approx(audit.overall.accuracy)
    assert lines[-1]["test_hard"] == pytest.approx(audit.groups["hard"].accuracy)
    assert lines[-1]["test_worst"] == pytest.approx(min(entry.accuracy for entry in audit.classes))
    assert json.loads(directory.environment.read_text())["processes"] == 1


def test_same_seed_same_result_and_another_seed_another(tmp_path: Path) -> None:
    first, second = (metrics(trained(tmp_path / name)) for name in ("a", "b"))
    assert first == second
    assert metrics(trained(tmp_path / "c", seed=1)) != first


def test_the_engine_is_a_plain_loop(tmp_path: Path) -> None:
    settings = {
        "weight_decay": 1e-3,
        "momentum": 0.8,
        "nesterov": True,
        "warmup_epochs": 1.0,
        "clip_grad": 0.5,
        "seed": 3,
    }
    directory = trained(tmp_path / "run", **settings)
    run = new_run(**settings)  # for its data and order
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


def test_accumulation_is_the_whole_batch(tmp_path: Path) -> None:
    whole, parts = (load_weights(trained(tmp_path / f"{n}", micro_batches=n).model) for n in (1, 5))
    for name, tensor in whole.items():
        torch.testing.assert_close(parts[name], tensor, rtol=1e-4, atol=1e-6)


def test_steps_end_in_the_middle_of_an_epoch(tmp_path: Path) -> None:
    run = new_run()
    directory = trained(tmp_path / "run", epochs=None, steps=len(run.batches) + 2)
    assert [line.get("epoch") for line in metrics(directory)] == [1, 2, None]
    assert load_checkpoint(directory.last)["position"]["updates"] == len(run.batches) + 2


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_learns(precision: str, tmp_path: Path) -> None:
    final = metrics(trained(tmp_path / "run", precision=precision, epochs=5))[-1]
    assert final["test_accuracy"] > 0.7


IMAGES = {"model": "resnet20", "steps": 2, "epochs": None, "batch_size": 16}


def assert_close_to_plain(tmp_path: Path, **settings) -> None:
    plain = load_weights(trained(tmp_path / "plain", **IMAGES).model)
    other = load_weights(trained(tmp_path / "other", **IMAGES, **settings).model)
    for name, tensor in plain.items():
        torch.testing.assert_close(other[name], tensor, rtol=1e-2, atol=1e-3)


def test_channels_last_changes_nothing_but_the_layout(tmp_path: Path) -> None:
    assert_close_to_plain(tmp_path, channels_last=True)


@pytest.mark.slow
def test_compiled_network(tmp_path: Path) -> None:
    assert_close_to_plain(tmp_path, compile=True)


def test_the_best_epoch_is_chosen_on_held_out_samples(tmp_path: Path) -> None:
    directory = trained(tmp_path / "run", val_fraction=0.2, monitor="hard", epochs=6, lr=0.3)
    *epochs, final = metrics(directory)
    values = [(line["val_hard"], line["val_accuracy"]) for line in epochs]
    assert final["chosen_epoch"] == 1 + values.index(max(values))
    state = load_checkpoint(directory.last)["model"]
    same = all(torch.equal(state[name], tensor) for name, tensor in load_weights(directory.model).items())
    assert same == (final["chosen_epoch"] == 6)


def test_weights_between_the_first_and_the_last(tmp_path: Path) -> None:
    first = new_run().model.state_dict()
    last = load_weights(trained(tmp_path / "last").model)
    between = load_weights(trained(tmp_path / "between", wise_ft_alpha=0.6).model)
    for name, tensor in between.items():
        torch.testing.assert_close(tensor, 0.4 * first[name] + 0.6 * last[name])


def test_the_held_out_part_is_never_trained_on(tmp_path: Path) -> None:
    run = new_run(val_fraction=0.25)
    assert run.validation is not None
    assert not set(run.train.index.tolist()) & set(run.validation.index.tolist())
    assert len(run.train) + len(run.validation) == len(run.data.train)
    share = run.validation.counts(10) / run.data.train.counts(10)
    assert share.min() > 0.2
    assert share.max() < 0.3


def test_a_loss_that_is_not_finite_stops_the_run(tmp_path: Path) -> None:
    with pytest.raises(NonFiniteLossError, match=r"epoch \d, step \d+: .*logits \((nan|infinite)\)") as stop:
        trained(tmp_path / "run", lr=1e30)
    assert len(stop.value.samples) == 64
    record = json.loads((tmp_path / "run" / "failure.json").read_text())
    assert record["samples"] == stop.value.samples
    state = load_checkpoint(tmp_path / "run" / "checkpoints" / "last.pt")
    assert all(tensor.isfinite().all() for tensor in state["model"].values())


def test_features_that_have_no_finite_square_stop_the_run_too(tmp_path: Path) -> None:
    """A network that diverges may have finite logits for a while, when its last layer shrinks as its features grow."""
    run = new_run(method="mr2")
    *_, hidden, _, head = run.model
    with torch.no_grad():
        for parameter in hidden.parameters():
            parameter *= 1e25
        head.weight *= 1e-25
    batch = next(iter(run.batches.epoch(0)))
    with pytest.raises(NonFiniteLossError, match=r"size of the features \(infinite\)"):
        run.backward(run.method.objective, batch)


def test_an_error_of_one_process_is_not_discussed_with_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """They may not have it, and would never answer; only what a loss refuses is refused on all of them."""
    run = new_run()

    def objective(run: Run, batch: object) -> torch.Tensor:
        raise ValueError("only here")

    monkeypatch.setattr("classgap.engine.run.all_gather_object", lambda value: pytest.fail("waits for the others"))
    with pytest.raises(ValueError, match="only here"):
        run.backward(objective, next(iter(run.batches.epoch(0))))


def test_a_finished_run_stays_unless_forced(tmp_path: Path) -> None:
    out = tmp_path / "run"
    trained(out)
    before = (out / "metrics.jsonl").stat().st_mtime_ns
    assert train(config(out=out), quiet=True).already
    with pytest.raises(ValueError, match="epochs 3 there and 4 here"):
        trained(out, epochs=4)
    assert (out / "metrics.jsonl").stat().st_mtime_ns == before
    assert not train(config(out=out, epochs=1), quiet=True, overwrite=True).already
    assert len(metrics(out)) == 2


@pytest.mark.parametrize("wrong", [{"data": "digit"}, {"model": "resnet2"}, {"method": "mr3"}, {"mix": "mixdown"}])
def test_what_is_mistyped_leaves_no_trace(wrong: dict, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"did you mean|there are"):
        trained(tmp_path / "run", **wrong)
    assert not (tmp_path / "run").exists()


def test_force_with_a_mistake_keeps_the_run_that_is_there(tmp_path: Path) -> None:
    trained(tmp_path / "run")
    with pytest.raises(ValueError, match="did you mean"):
        train(config(out=tmp_path / "run", method="mr3"), quiet=True, overwrite=True)
    assert len(metrics(tmp_path / "run")) == 4


def test_a_run_in_steps_that_was_killed_after_the_last_one_has_no_step_more(tmp_path: Path, monkeypatch) -> None:
    settings = {"epochs": None, "steps": 20, "save_every": 0.0}  # an epoch has fourteen
    whole = metrics(trained(tmp_path / "whole", **settings))
    end_epoch = Fit._end_epoch

    def killed_in_the_second(fit: Fit, display: Display) -> dict:
        if fit.epochs_done:
            raise KeyboardInterrupt
        return end_epoch(fit, display)

    with monkeypatch.context() as context:
        context.setattr(Fit, "_end_epoch", killed_in_the_second)
        with pytest.raises(KeyboardInterrupt):
            trained(tmp_path / "killed", **settings)
    assert load_checkpoint(tmp_path / "killed" / "checkpoints" / "last.pt")["position"]["updates"] == 20
    assert metrics(trained(tmp_path / "killed", **settings)) == whole


def test_an_epochs_speed_is_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_milestones_are_shares_of_the_steps() -> None:
    run = new_run(epochs=None, steps=20, schedule="step", milestones=(0.5, 0.75))
    assert [run.schedule.factor(update) for update in (9, 10, 14, 15)] == pytest.approx([1, 0.1, 0.1, 0.01])


def test_gaps_are_filled_as_the_run_was_begun(tmp_path: Path) -> None:
    out = tmp_path / "run"
    trained(out)
    (out / "metrics.jsonl").write_text("")  # as if it had been killed at the very end
    train(TrainConfig(data="digits", out=out), quiet=True)
    assert len(metrics(out)) == 1  # its three epochs are in the checkpoint


def test_metrics_for_tensorboard(tmp_path: Path) -> None:
    event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    directory = trained(tmp_path / "run", tensorboard=True)
    events = event_accumulator.EventAccumulator(str(directory.path / "tensorboard"))
    events.Reload()
    told = [line["loss"] for line in metrics(directory)[:-1]]
    assert [event.value for event in events.Scalars("loss")] == pytest.approx(told)
