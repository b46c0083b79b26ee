"""LDAM in training: the cosine head, and weights that change at the right epoch."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from method_cases import STEPS, assert_resumes, first_batch, metrics, moons_run, moons_trained

from classgap import methods
from classgap.engine.checkpoint import load_checkpoint
from classgap.models import CosineClassifier


def test_logits_are_scaled_cosines_and_the_loss_is_the_published_one() -> None:
    run = moons_run("ldam:margin=0.4:scale=10")
    assert isinstance(run.tap.head, CosineClassifier)
    batch = first_batch(run)
    value = run.method.objective(run, batch)
    cosines = F.normalize(run.tap.features) @ F.normalize(run.tap.head.weight).T
    torch.testing.assert_close(run.forward(batch.inputs), 10 * cosines)
    margins = run.train_counts.double() ** -0.25
    margins = 0.4 * margins / margins.max()
    shifted = cosines - F.one_hot(batch.labels, 2) * margins[batch.labels, None].float()
    torch.testing.assert_close(value, F.cross_entropy(10 * shifted, batch.labels))


def test_no_margin_and_scale_1_is_cross_entropy_of_cosines() -> None:
    run = moons_run("ldam:margin=0:scale=1")
    batch = first_batch(run)
    value = run.method.objective(run, batch)
    torch.testing.assert_close(value, F.cross_entropy(run.forward(batch.inputs), batch.labels))


def test_a_cosine_head_keeps_its_directions() -> None:
    run = moons_run("erm")
    run.model[-1] = before = CosineClassifier(8, 2, scale=100.0)
    method = methods.build("ldam", num_classes=2, class_counts=[9, 1])
    method.prepare(run)
    assert torch.equal(run.model[-1].weight, before.weight)
    assert run.model[-1].scale == 30


def published_weights(counts: torch.Tensor) -> torch.Tensor:
    inverse = torch.tensor([(1 - 0.9999) / (1 - 0.9999 ** float(count)) for count in counts], dtype=torch.float64)
    return (inverse / inverse.sum() * len(counts)).float()


def test_weights_switch_at_epoch_160_of_200() -> None:
    run = moons_run("ldam-drw", epochs=200)
    for epoch, switched in ((0, False), (159, False), (160, True), (199, True)):
        run.method.loss.reweight([1.0, 1.0])
        run.position.epoch = epoch
        run.method.epoch_start(run)
        wanted = published_weights(run.train_counts) if switched else torch.ones(2)
        torch.testing.assert_close(run.method.loss.class_weights, wanted, rtol=1e-4, atol=1e-6)


def test_published_numbers() -> None:
    torch.testing.assert_close(published_weights(torch.tensor([100, 10])), torch.tensor([0.182563, 1.817437]))


def test_resumed_before_and_after_the_switch(tmp_path: Path) -> None:
    whole = assert_resumes(tmp_path, "ldam-drw:switch=0.67", [5, 2 * STEPS + 3])
    weights = load_checkpoint(whole.last)["method"]["loss.class_weights"]
    assert weights[1] > 1.5  # the rare moon
    plain = metrics(moons_trained(tmp_path / "ldam", "ldam"))
    deferred = metrics(whole)
    assert [line["loss"] for line in deferred[:2]] == [line["loss"] for line in plain[:2]]
    assert deferred[2]["loss"] != plain[2]["loss"]


def test_a_switch_beyond_the_end_is_refused() -> None:
    with pytest.raises(ValueError, match="switch must be a share"):
        methods.build("ldam-drw:switch=160", num_classes=2, class_counts=[9, 1])
