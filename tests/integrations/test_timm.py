"""timm: the loss's state in timm's checkpoints, resumed runs, parameters of losses, two processes."""

from pathlib import Path

import pytest
import timm
import torch
from timm.task import ClassificationTask, resume_task_checkpoint
from timm.utils import CheckpointSaver
from torch import Tensor, nn

import classgap as cg
from classgap.distributed import rank, world_size
from classgap.integrations.timm import ClassLossTask
from classgap.testing import Processes

CLASSES = 3
LOSSES = {"mr2": "mr2:strength=0.5", "center": "center:strength=0.5:centers=trained"}


def build(loss: str) -> tuple[ClassLossTask, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, CLASSES))
    task = ClassLossTask(model, LOSSES.get(loss, loss), verbose=False)
    return task, torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)


def batch(seed: int = 0) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)
    return torch.randn(12, 3, 2, 2, generator=random), torch.arange(12) % CLASSES


def take_steps(loss: str) -> dict[str, Tensor]:
    """The state of the model and the loss after two steps; each process has an uneven part of the batch."""
    task, optimizer = build(loss)
    if world_size() > 1:
        task.prepare_distributed()
    task.train_loss_parameters(optimizer)
    inputs, targets = batch()
    mine = slice(None) if world_size() == 1 else slice(0, 5) if rank() == 0 else slice(5, 12)
    for _ in range(2):
        optimizer.zero_grad()
        task(inputs[mine], targets[mine])["loss"].backward()
        optimizer.step()
    state = task.get_checkpoint_state()
    return state["state_dict"] | {f"loss.{name}": each for name, each in state["task_state"]["class_loss"].items()}


@pytest.mark.parametrize("loss", LOSSES)
def test_two_processes_equal_one(loss: str, processes: Processes) -> None:
    expected = take_steps(loss)
    for found in processes.run(take_steps, loss):
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            torch.testing.assert_close(found[name], value, rtol=1e-4, atol=1e-5, msg=name)


@pytest.mark.parametrize("loss", ["mr2:memory_size=6", LOSSES["center"]])
def test_checkpoints_of_timm_contain_the_loss(loss: str, tmp_path: Path) -> None:
    def steps(task: ClassLossTask, optimizer: torch.optim.Optimizer, seeds: range) -> None:
        for seed in seeds:
            optimizer.zero_grad()
            task(*batch(seed))["loss"].backward()
            optimizer.step()

    whole, optimizer = build(loss)
    whole.train_loss_parameters(optimizer)
    steps(whole, optimizer, range(2))
    saver = CheckpointSaver(whole.get_eval_model(), optimizer, task=whole, checkpoint_dir=str(tmp_path))
    saver.save_checkpoint(0)
    steps(whole, optimizer, range(2, 4))

    resumed, optimizer = build(loss)
    resumed.train_loss_parameters(optimizer)
    assert resume_task_checkpoint(resumed, tmp_path / "last.pth.tar", optimizer, log_info=False) == 1
    steps(resumed, optimizer, range(2, 4))
    for name, value in whole.state_dict().items():
        torch.testing.assert_close(resumed.state_dict()[name], value, rtol=0, atol=0, msg=name)


def test_the_weights_stay_those_of_a_timm_model(tmp_path: Path) -> None:
    model = timm.create_model("test_resnet", num_classes=CLASSES)
    task = ClassLossTask(model, "mr2", verbose=False)
    task(torch.randn(4, 3, 32, 32), torch.tensor([0, 1, 2, 0]))
    optimizer = torch.optim.SGD(model.parameters())
    CheckpointSaver(model, optimizer, task=task, checkpoint_dir=str(tmp_path)).save_checkpoint(0)
    loaded = timm.create_model("test_resnet", num_classes=CLASSES, checkpoint_path=str(tmp_path / "last.pth.tar"))
    for name, value in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], value), name


def test_a_checkpoint_without_the_loss_is_named(tmp_path: Path) -> None:
    task, optimizer = build("mr2")
    plain = ClassificationTask(task.trainable_module, nn.CrossEntropyLoss(), verbose=False)
    CheckpointSaver(task.trainable_module, optimizer, task=plain, checkpoint_dir=str(tmp_path)).save_checkpoint(0)
    other, _ = build("mr2")
    nn.init.zeros_(other.trainable_module[1].weight)
    with pytest.raises(ValueError, match=r"MR2Loss \(task_state\.class_loss\)"):
        resume_task_checkpoint(other, tmp_path / "last.pth.tar", log_info=False)
    assert not other.trainable_module[1].weight.any()  # nothing was loaded
    other.load_checkpoint_state(task.trainable_module.state_dict(), strict=False)
    assert torch.equal(other.trainable_module[1].weight, task.trainable_module[1].weight)


def test_evaluation_does_not_change_the_loss() -> None:
    task, _ = build("mr2:memory_size=6")
    task(*batch())
    before = {name: each.clone() for name, each in task.criterion.state_dict().items()}
    task.eval()
    task(*batch(1))
    assert all(torch.equal(each, before[name]) for name, each in task.criterion.state_dict().items())
    task.train()
    task(*batch(1))
    assert not all(torch.equal(each, before[name]) for name, each in task.criterion.state_dict().items())


def test_the_value_and_the_terms_are_those_of_the_loss() -> None:
    task, _ = build("mr2")
    loss, tap = cg.losses.MR2Loss(CLASSES, strength=0.5), cg.FeatureTap(task.trainable_module)
    inputs, targets = batch()
    result = task(inputs, targets)
    expected = loss(result["output"], targets, features=tap.features)
    assert result["loss"].item() == pytest.approx(expected.item())
    assert {"logit", "representation"} <= result.keys()


def test_an_averaged_model_keeps_the_loss_of_the_task() -> None:
    task, _ = build("mr2")
    task.setup_ema(decay=0.5)
    task(*batch())
    task.update_ema()
    assert set(task.get_checkpoint_state(ema=True)) == {"state_dict_ema"}
    task.load_checkpoint_state(task.get_checkpoint_state(ema=True)["state_dict_ema"], ema=True)


def test_parameters_of_the_loss_must_be_trained() -> None:
    task, optimizer = build("center")
    with pytest.raises(ValueError, match=r"CenterLoss.*train_loss_parameters"):
        task(*batch())
    task.train_loss_parameters(optimizer, lr=0.25)
    task(*batch())["loss"].backward()
    assert [group["lr"] for group in optimizer.param_groups] == [0.5, 0.25]
    assert task.criterion.centers.grad is not None
    everything = torch.optim.SGD(task.parameters(), lr=0.1)
    task.train_loss_parameters(everything)
    assert len(everything.param_groups) == 1


def test_a_loss_that_cannot_be_built_is_named() -> None:
    with pytest.raises(ValueError, match=r"pass class_counts=\[…\] to ClassLossTask"):
        ClassLossTask(timm.create_model("test_resnet", num_classes=3), "elm", verbose=False)
