"""SupCon: a contrastive encoder, then a classifier on the frozen encoder; and the joint form."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from method_cases import STEPS, assert_resumes, copied, first_batch, moons_run, moons_trained
from training_cases import metrics, new_run

from classgap.engine.storage.checkpoint import load_checkpoint

IMAGES = {"data": "digits:fraction=0.2", "model": "resnet20", "batch_size": 32, "augment": "crop-flip"}


def slow_contrast(unit: torch.Tensor, labels: torch.Tensor, temperature: float) -> torch.Tensor:
    """Eq. (2) by loops."""
    total = torch.zeros((), dtype=torch.float64)
    for i in range(len(unit)):
        others = [a for a in range(len(unit)) if a != i]
        scores = torch.stack([unit[i] @ unit[a] / temperature for a in others]).double()
        mates = [place for place, a in enumerate(others) if labels[a] == labels[i]]
        total -= (scores[mates] - scores.logsumexp(0)).mean()
    return total / len(unit)


def test_the_objective_is_the_contrast_of_projected_views() -> None:
    run = new_run(**IMAGES, method="supcon:temperature=0.5")
    batch = first_batch(run)
    assert batch.other_view is not None
    assert not torch.equal(batch.inputs, batch.other_view)
    value = run.method.objective(run, batch)
    projected = run.method.projection(run.tap.features)
    assert projected.shape == (2 * len(batch), 128)
    unit, labels = F.normalize(projected, dim=1), torch.cat([batch.labels, batch.labels])
    torch.testing.assert_close(value.double(), slow_contrast(unit, labels, 0.5), rtol=1e-5, atol=1e-5)


def test_the_first_stage_trains_encoder_and_projection_only() -> None:
    run = moons_run("supcon")
    before, projection = copied(run.model), copied(run.method.projection)
    run.method.step(run, first_batch(run))
    changed = {name for name, tensor in run.model.state_dict().items() if not torch.equal(tensor, before[name])}
    assert changed == {"1.weight", "1.bias"}
    assert all(not torch.equal(each, projection[name]) for name, each in run.method.projection.state_dict().items())


def test_the_encoder_is_frozen_in_the_second_stage() -> None:
    run = new_run(**IMAGES, method="supcon")
    run.position.stage = 1
    run.begin_stage()
    run.model.train()
    assert run.batches.views == 1
    before, projection = copied(run.model), copied(run.method.projection)
    run.method.step(run, first_batch(run))
    changed = {name for name, tensor in run.model.state_dict().items() if not torch.equal(tensor, before[name])}
    assert changed == {"fc.weight", "fc.bias"}  # and no statistics of batch norm
    assert all(torch.equal(each, projection[name]) for name, each in run.method.projection.state_dict().items())
    value = run.method.objective(run, first_batch(run))
    run.model.eval()
    batch = first_batch(run)
    torch.testing.assert_close(value, F.cross_entropy(run.model(batch.inputs), batch.labels))


def test_it_learns(tmp_path: Path) -> None:
    run = moons_trained(
        tmp_path / "run", "supcon", epochs=20, data="two-moons:n_train=512:n_test=200:tail_fraction=0.4"
    )
    lines = metrics(run)
    assert [line["stage"] for line in lines[:-1]] == ["contrast"] * 20 + ["classifier"] * 20
    assert "contrast" in lines[0]
    assert "train_accuracy" not in lines[0]
    assert lines[19]["loss"] < lines[0]["loss"]
    assert lines[-1]["test_accuracy"] > 0.85


def test_stopped_in_each_stage(tmp_path: Path) -> None:
    assert_resumes(tmp_path, "supcon", [5, 3 * STEPS, 4 * STEPS + 2])
    state = load_checkpoint(tmp_path / "whole" / "checkpoints" / "last.pt")
    assert "projection.0.weight" in state["method"]


def test_joint(tmp_path: Path) -> None:
    assert_resumes(tmp_path, "supcon-joint", [5])
    run = moons_run("supcon-joint:strength=0")
    batch = first_batch(run)
    value = run.method.objective(run, batch)
    torch.testing.assert_close(value, F.cross_entropy(run.model(batch.inputs), batch.labels))  # equal views
    run = moons_run("supcon-joint:strength=0.5")
    batch = first_batch(run)
    value = run.method.objective(run, batch).double()
    unit = F.normalize(run.method.projection(run.tap.features), dim=1)
    contrast = slow_contrast(unit, torch.cat([batch.labels, batch.labels]), 0.1)
    expected = F.cross_entropy(run.model(batch.inputs), batch.labels).double() + 0.5 * contrast
    torch.testing.assert_close(value, expected, rtol=1e-4, atol=1e-5)
    run.method.step(run, batch)
    assert run.method.projection[0].weight.grad is not None


def test_mixed_targets_are_rejected() -> None:
    for method in ("supcon", "supcon-joint"):
        with pytest.raises(ValueError, match=r"SupervisedContrastiveLoss .* mix must be none"):
            moons_run(method, mix="mixup:alpha=1")
