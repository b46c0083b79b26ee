"""Micro-batches contain each sample once, and losses with state see one after the other."""

import copy
from pathlib import Path

import pytest
import torch
from training_cases import config, new_run

from classgap.data.batch import Batch
from classgap.engine import train
from classgap.engine.batches import split_micro_batches
from classgap.losses import ClassLoss, LargeMarginDiscriminativeLoss, MR2Loss


def made_batch(size: int) -> Batch:
    labels = torch.arange(size) % 10
    return Batch(torch.randn(size, 1, 8, 8), labels, labels, torch.arange(size), size)


@pytest.mark.parametrize(("size", "parts", "sizes"), [(10, 1, [10]), (10, 3, [3, 3, 4]), (2, 5, [1, 1])])
def test_micro_batches_contain_each_sample_once(size: int, parts: int, sizes: list[int]) -> None:
    found = split_micro_batches(made_batch(size), parts)
    assert [len(part) for part, _ in found] == sizes
    assert torch.cat([part.rows for part, _ in found]).tolist() == list(range(size))
    assert [share for _, share in found] == [each / size for each in sizes]


@pytest.mark.parametrize(
    ("method", "twin"),
    [("mr2:strength=0.5", MR2Loss(10, strength=0.5)), ("lmdl", LargeMarginDiscriminativeLoss(10, 16))],
)
def test_a_loss_with_state_sees_one_micro_batch_at_a_time(method: str, twin: ClassLoss) -> None:
    """Gradients are the weighted sum over micro-batches; the state is updated with each of them."""
    run = new_run(method=method, micro_batches=3)
    model, batch = copy.deepcopy(run.model), made_batch(20)
    run.backward(run.method.objective, batch)
    total = 0.0
    for rows in (slice(0, 6), slice(6, 13), slice(13, 20)):
        features = model[:-1](batch.inputs[rows])
        value = twin(model[-1](features), batch.labels[rows], features=features, head=model[-1])
        share = len(batch.labels[rows]) / 20
        (share * value).backward()
        total += share * value.item()
    for ours, theirs in zip(run.model.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)
    remembered = twin.state_dict()
    assert remembered
    for name, tensor in run.method.loss.state_dict().items():
        torch.testing.assert_close(tensor, remembered[name])
    assert run.meter.means()["loss"] == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize(
    ("method", "parts", "named"),
    [
        ("mr2", 2, "MR2Loss"),
        ("sam+group-dro", 2, "GroupDROLoss"),
        ("supcon", 2, "SupervisedContrastiveLoss"),
        ("mr2", 1, ""),
        ("erm", 2, ""),
        ("sam+ldam", 2, ""),
    ],
)
def test_losses_over_pairs_cause_a_warning(
    method: str, parts: int, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {"data": "two-moons:n_train=64:n_test=20", "epochs": 1, "audit": False}
    train(config(out=tmp_path / "run", method=method, micro_batches=parts, **settings))
    warning = f"classgap: micro_batches=2: {named} compares samples"
    assert (warning in capsys.readouterr().err) == bool(named)
