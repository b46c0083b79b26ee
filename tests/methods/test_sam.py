"""Sharpness-aware steps against gradients computed by hand."""

import copy
import math
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from method_cases import assert_resumes, copied, first_batch, moons_run, moons_trained
from torch import nn

from classgap.engine.storage.checkpoint import load_weights
from classgap.losses import CrossEntropyLoss, MR2Loss
from classgap.methods import Method
from classgap.methods.sam import SharpnessAware

PLAIN = {"momentum": 0.0, "weight_decay": 0.0, "schedule": "constant", "lr": 0.1}


def by_hand(model: nn.Module, batch, rho: float, adaptive: bool, smallest: float = 0.01) -> dict[str, torch.Tensor]:
    """The gradient at the top of the climb, with autograd alone."""
    model = copy.deepcopy(model)
    names, parameters = zip(*model.named_parameters(), strict=True)
    gradients = torch.autograd.grad(F.cross_entropy(model(batch.inputs), batch.labels), parameters)
    sizes = [
        each.detach().abs() + smallest if adaptive and "weight" in name else torch.ones_like(each)
        for name, each in zip(names, parameters, strict=True)
    ]
    norm = math.sqrt(sum(float((t * g).square().sum()) for t, g in zip(sizes, gradients, strict=True)))
    with torch.no_grad():
        for each, t, g in zip(parameters, sizes, gradients, strict=True):
            each += rho * t * t * g / norm
    there = torch.autograd.grad(F.cross_entropy(model(batch.inputs), batch.labels), parameters)
    return dict(zip(names, there, strict=True))


@pytest.mark.parametrize("micro_batches", [1, 3])
@pytest.mark.parametrize("method", ["sam:rho=0.3", "asam:rho=0.3"])
def test_a_step_is_the_closed_form(method: str, micro_batches: int) -> None:
    run = moons_run(method, micro_batches=micro_batches, **PLAIN)
    batch = first_batch(run)
    before = copied(run.model)
    expected = by_hand(run.model, batch, 0.3, adaptive=method.startswith("asam"))
    plain = by_hand(run.model, batch, 0.0, adaptive=False)
    run.method.step(run, batch)
    for name, parameter in run.model.named_parameters():
        torch.testing.assert_close(parameter.detach(), before[name] - 0.1 * expected[name], rtol=1e-4, atol=1e-6)
    assert any(not torch.allclose(expected[name], plain[name], rtol=1e-2) for name in plain)


class Parabola(nn.Module):
    """One number w, and w²/2 as the loss."""

    def __init__(self, w: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([[w]]))


@pytest.mark.parametrize(
    ("w", "adaptive", "smallest", "gradient"),
    [(1.0, False, 0.0, 1.05), (2.0, True, 0.0, 2.1), (2.0, True, 0.01, 2.1005)],
)
def test_published_numbers(w: float, adaptive: bool, smallest: float, gradient: float) -> None:
    class Half(Method):
        def objective(self, run, batch):
            return run.model.weight.square().sum() / 2

    run = moons_run("erm", **PLAIN)
    run.model = Parabola(w)
    run.optimizer = torch.optim.SGD(run.model.parameters(), lr=1.0)
    run.optimizer.param_groups[0]["initial_lr"] = 1.0
    method = SharpnessAware(Half(CrossEntropyLoss(2)), rho=0.05, adaptive=adaptive, smallest=smallest)
    method.step(run, first_batch(run))
    assert run.model.weight.item() == pytest.approx(w - gradient, rel=1e-5)


def test_rho_0_is_the_plain_step(tmp_path: Path) -> None:
    settings = {"clip_grad": 0.5, "micro_batches": 2}
    plain = load_weights(moons_trained(tmp_path / "erm", "erm", **settings).model)
    flat = load_weights(moons_trained(tmp_path / "sam", "sam:rho=0", **settings).model)
    assert all(torch.equal(tensor, flat[name]) for name, tensor in plain.items())


def test_batch_norm_learns_from_the_first_pass_only() -> None:
    images = {"data": "digits", "model": "resnet20", "batch_size": 8}
    runs = {method: moons_run(method, **images, **PLAIN) for method in ("erm", "sam:rho=0.5")}
    buffers = []
    for run in runs.values():
        run.method.step(run, first_batch(run))
        buffers.append(dict(run.model.named_buffers()))
    assert any("running_mean" in name for name in buffers[0])
    assert all(torch.equal(tensor, buffers[1][name]) for name, tensor in buffers[0].items())
    weights = [torch.cat([each.detach().flatten() for each in run.model.parameters()]) for run in runs.values()]
    assert not torch.allclose(*weights)


@pytest.mark.parametrize("micro_batches", [1, 3])
def test_a_loss_learns_from_the_first_pass_only_and_metrics_are_its(micro_batches: int) -> None:
    plain, flat = (moons_run("mr2", micro_batches=micro_batches, **PLAIN) for _ in range(2))
    flat.method = SharpnessAware(Method(MR2Loss(num_classes=2)), rho=0.5)
    for run in (plain, flat):
        run.method.step(run, first_batch(run))
    remembered = plain.method.loss.state_dict()
    assert remembered
    assert all(torch.equal(tensor, remembered[name]) for name, tensor in flat.method.loss.state_dict().items())
    assert flat.meter.means() == plain.meter.means()


def test_both_passes_have_the_same_random_mask() -> None:
    run = moons_run("sam:rho=0", **PLAIN)
    run.model = nn.Sequential(nn.Linear(2, 8), nn.Dropout(0.5), nn.Linear(8, 2))
    run.begin_stage()
    seen = []
    run.model[1].register_forward_hook(lambda module, args, output: seen.append(output.detach() == 0))
    for _ in range(2):
        run.method.step(run, first_batch(run))
    assert torch.equal(seen[0], seen[1])
    assert torch.equal(seen[2], seen[3])
    assert not torch.equal(seen[0], seen[2])


def test_an_overflow_in_fp16_skips_the_step() -> None:
    run = moons_run("sam", precision="fp16", **PLAIN)
    run.scaler = torch.amp.GradScaler("cpu", init_scale=1e38)
    before, batch = copied(run.model), first_batch(run)
    batch = batch.map(lambda tensor: tensor * 1e4 if tensor.is_floating_point() else tensor)
    run.method.step(run, batch)
    assert all(torch.equal(tensor, before[name]) for name, tensor in run.model.state_dict().items())
    assert run.scaler.get_scale() == pytest.approx(5e37)


def test_the_scale_of_fp16_does_not_change_the_perturbation() -> None:
    found = []
    for scale in (1.0, 4096.0):
        run = moons_run("sam:rho=0.5", precision="fp16", clip_grad=1.0, **PLAIN)
        run.scaler = torch.amp.GradScaler("cpu", init_scale=scale)
        run.method.step(run, first_batch(run))
        found.append(torch.cat([each.detach().flatten() for each in run.model.parameters()]))
    torch.testing.assert_close(found[0], found[1], rtol=1e-3, atol=1e-5)


def test_a_method_with_its_own_step_is_rejected() -> None:
    inner = SharpnessAware(Method(CrossEntropyLoss(2)))
    with pytest.raises(ValueError, match="SharpnessAware overrides step"):
        SharpnessAware(inner)


@pytest.mark.parametrize("method", ["sam", "asam"])
def test_stopped_and_resumed(method: str, tmp_path: Path) -> None:
    assert_resumes(tmp_path, method, [3, 16])


def _steps_of_two_processes(inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Weights after three steps, each process with its part of the batch."""
    from classgap.data.batch import Batch
    from classgap.data.sampling.batching import shard_slice
    from classgap.distributed import rank, world_size

    run = moons_run("asam:rho=0.5", **PLAIN)
    mine = shard_slice(len(labels), rank(), world_size())
    batch = Batch(inputs[mine], labels[mine], labels[mine], torch.arange(len(labels))[mine], len(labels))
    for _ in range(3):
        run.method.step(run, batch)
    return torch.cat([each.detach().flatten() for each in run.model.parameters()])


def test_two_processes_perturb_as_one(processes) -> None:
    inputs, labels = torch.randn(21, 2), torch.randint(0, 2, (21,))
    first, second = processes.run(_steps_of_two_processes, inputs, labels)
    assert torch.equal(first, second)
    torch.testing.assert_close(first, _steps_of_two_processes(inputs, labels), rtol=1e-4, atol=1e-5)
