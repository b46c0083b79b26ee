"""Learning from Failure: running losses, weights, and two networks that train side by side."""

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from method_cases import STEPS, assert_resumes, config, copied, first_batch, metrics, moons_run, moons_trained

from classgap.data.batch import Batch
from classgap.data.dataset import Dataset, Split
from classgap.engine import Run
from classgap.engine.defaults import resolve_config
from classgap.engine.storage.checkpoint import load_checkpoint
from classgap.methods.lff import LearningFromFailure


class Slow:
    """The published bookkeeping, sample by sample."""

    def __init__(self, labels: list[int]) -> None:
        self.labels = labels
        self.mean: dict[int, float] = {}

    def update(self, row: int, loss: float) -> None:
        self.mean[row] = loss if row not in self.mean else 0.7 * self.mean[row] + 0.3 * loss

    def normalized(self, row: int) -> float:
        largest = max(self.mean.get(other, 0.0) for other, label in enumerate(self.labels) if label == self.labels[row])
        return self.mean[row] / largest


def test_objective_is_the_published_one_over_several_batches() -> None:
    run = moons_run("lff")
    labels = run.train.targets.tolist()
    own, second = Slow(labels), Slow(labels)
    batches = [batch for epoch in range(2) for batch in run.batches.epoch(epoch)]
    for batch in batches:
        with torch.no_grad():
            pairs = [net(batch.inputs).double() for net in (run.model, run.method.second)]
        losses = [F.cross_entropy(each, batch.labels, reduction="none") for each in pairs]
        for row, one, two in zip(batch.rows.tolist(), *(each.tolist() for each in losses), strict=True):
            own.update(row, one)
            second.update(row, two)
        b, d = (np.array([book.normalized(row) for row in batch.rows.tolist()]) for book in (second, own))
        weight = b / (b + d + 1e-8)
        p = np.exp(-losses[1].numpy())
        expected = (weight * losses[0].numpy()).mean() + (0.7 * p**0.7 * losses[1].numpy()).mean()
        before = copied(run.method)
        with run.method.loss.frozen():
            run.method.objective(run, batch)
        assert all(torch.equal(tensor, before[name]) for name, tensor in run.method.state_dict().items())
        value = run.method.objective(run, batch)
        assert value.item() == pytest.approx(expected, rel=1e-4)
        np.testing.assert_allclose(run.method.weights(batch.rows).numpy(), weight, rtol=1e-4, atol=1e-6)
        # Each network is moved by a step with its own loss alone.
        run.method.loss.eval()  # the running losses have moved already
        run.backward(run.method.objective, batch)
        run.method.loss.train()
        run.update()


def test_published_numbers() -> None:
    weight = 0.7 * 0.5**0.7
    assert weight == pytest.approx(0.430901, rel=1e-5)
    assert weight * np.log(2) == pytest.approx(0.298677, rel=1e-5)
    run = moons_run("lff")
    run.method.second.load_state_dict(run.model.state_dict())
    batch = first_batch(run)
    run.method.objective(run, batch)
    assert run.method.weights(batch.rows).tolist() == pytest.approx([0.5] * len(batch), abs=1e-6)  # equal networks
    with torch.no_grad():
        for net in (run.model, run.method.second):
            net[-1].weight.zero_()
            net[-1].bias.zero_()
    run.method.objective(run, batch)
    assert run.method.loss.terms["second"].item() == pytest.approx(0.298677, rel=1e-5)


def test_no_gradient_goes_from_one_network_to_the_other() -> None:
    run = moons_run("lff")
    batch = first_batch(run)
    run.method.objective(run, batch)
    weights = run.method.weights(batch.rows)
    run.backward(run.method.objective, batch)
    found = [each.grad.clone() for each in run.model.parameters()]
    with torch.no_grad():
        run.method._update_losses(
            batch.rows,
            *(
                F.cross_entropy(net(batch.inputs), batch.labels, reduction="none")
                for net in (run.model, run.method.second)
            ),
        )
    torch.testing.assert_close(run.method.weights(batch.rows), weights)  # the same losses again
    loss = (weights * F.cross_entropy(run.model(batch.inputs), batch.labels, reduction="none")).mean()
    expected = torch.autograd.grad(loss, list(run.model.parameters()))
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs)


def cue_data(samples: int = 600) -> Dataset:
    """A loud cue that is wrong for one sample in ten, and a faint one that is always right."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(samples) % 2
    sign = 2.0 * labels - 1
    misled = torch.rand(samples, generator=generator) < 0.1
    noise = torch.randn(samples, 2, generator=generator)
    loud = torch.where(misled, -sign, sign) + 0.1 * noise[:, 0]
    split = Split.from_arrays(torch.stack([loud, 0.3 * sign + 0.05 * noise[:, 1]], dim=1), labels)
    return Dataset("cues", split, split, ("no", "yes"), "vector", (2,))


def test_weights_favor_samples_the_biased_network_fails() -> None:
    data = cue_data()
    wanted = config(data="cues", model="mlp:width=8", method="lff", epochs=10, lr=0.05)
    run = Run(resolve_config(wanted, data), data, torch.device("cpu"))
    for epoch in range(10):
        for batch in run.batches.epoch(epoch):
            run.method.step(run, batch)
    misled = (run.train.inputs[:, 0] > 0).long() != run.train.targets
    with torch.no_grad():
        right = [(net(run.train.inputs).argmax(dim=1) == run.train.targets) for net in (run.model, run.method.second)]
    weights = run.method.weights(torch.arange(len(run.train)))
    failed = ~right[1]
    assert failed[misled].double().mean() > 0.5  # the second network goes by the loud cue
    assert weights[failed].mean() > weights[~failed].mean() + 0.1
    assert right[0][misled].double().mean() > right[1][misled].double().mean() + 0.2


def test_a_sample_that_appears_twice_counts_with_its_mean() -> None:
    method = LearningFromFailure(num_classes=2, num_samples=3)
    rows = torch.tensor([2, 0, 2])
    method._update_losses(rows, torch.tensor([1.0, 5.0, 3.0]), torch.tensor([0.0, 1.0, 2.0]))
    assert method.own_losses.tolist() == [5, 0, 2]
    assert method.second_losses.tolist() == [1, 0, 1]
    method._update_losses(torch.tensor([2]), torch.tensor([4.0]), torch.tensor([1.0]))
    assert method.own_losses.tolist() == pytest.approx([5, 0, 0.7 * 2 + 0.3 * 4])
    assert method.seen.tolist() == [True, False, True]


def test_losses_of_0_give_zero_weights() -> None:
    method = LearningFromFailure(num_classes=2, num_samples=3)
    assert method.weights(torch.arange(3)).tolist() == [0, 0, 0]


def test_both_networks_are_trained_alike() -> None:
    run = moons_run("lff")
    own, second = run.optimizer.param_groups
    assert own["weight_decay"] == second["weight_decay"] > 0
    assert [each.shape for each in own["params"]] == [each.shape for each in second["params"]]
    assert not torch.equal(own["params"][0], second["params"][0])


def test_stopped_and_resumed(tmp_path: Path) -> None:
    whole = assert_resumes(tmp_path, "lff", [3, STEPS, 2 * STEPS + 5])
    ours, theirs = (
        load_checkpoint(path / "checkpoints" / "last.pt")["method"] for path in (whole.path, tmp_path / "stopped")
    )
    assert any(name.startswith("second.") for name in ours)
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())
    assert {"loss", "second", "train_accuracy"} <= metrics(whole)[0].keys()


def test_mixed_samples_are_rejected() -> None:
    with pytest.raises(ValueError, match="mix must be none"):
        moons_run("lff", mix="mixup:alpha=0.2")


def _trained_in_parts(inputs: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
    from classgap.data.sampling.batching import shard_slice
    from classgap.distributed import rank, world_size

    run = moons_run("lff", momentum=0.0)
    for step in range(4):
        rows = (torch.arange(len(labels)) * 3 + step) % 50
        mine = shard_slice(len(labels), rank(), world_size())
        run.method.labels[rows] = labels
        run.method.step(run, Batch(inputs[mine], labels[mine], labels[mine], rows[mine], len(labels)))
    found = {**run.model.state_dict(), **run.method.state_dict()}
    return {name: tensor.clone() for name, tensor in found.items()}


def test_two_processes_are_one(processes) -> None:
    inputs, labels = torch.randn(21, 2), torch.arange(21) % 2
    first, second = processes.run(_trained_in_parts, inputs, labels)
    alone = _trained_in_parts(inputs, labels)
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name]), name
        torch.testing.assert_close(tensor, alone[name], rtol=1e-4, atol=1e-5)


def test_it_trains(tmp_path: Path) -> None:
    final = metrics(moons_trained(tmp_path / "run", "lff", data="digits", epochs=8))[-1]
    assert final["test_accuracy"] > 0.6
