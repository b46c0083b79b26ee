"""LDAM in training: the cosine head, and weights that change at the right update."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from method_cases import STEPS, assert_resumes, first_batch, metrics, moons_run, moons_trained

from classgap import methods
from classgap.engine import Run
from classgap.engine.storage.checkpoint import load_checkpoint
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


def updates_with_weights(run: Run) -> list[int]:
    """The updates, counted from 0, that are made with the published weights; all others have weights of 1."""
    found, batch = [], first_batch(run)
    for update in range(run.updates):
        run.position.updates = update
        run.method.objective(run, batch)
        if run.method.loss.weight.tolist() != [1, 1]:
            expected = published_weights(run.train_counts)
            torch.testing.assert_close(run.method.loss.weight, expected, rtol=1e-4, atol=1e-6)
            found.append(update)
    return found


def test_weights_switch_at_epoch_160_of_200() -> None:
    run = moons_run("ldam-drw", epochs=200, batch_size=512)
    assert run.updates == 200
    assert updates_with_weights(run) == list(range(160, 200))


@pytest.mark.parametrize(
    ("length", "first"),
    [({"epochs": 1}, 6), ({"epochs": 2}, 12), ({"epochs": 5}, 32), ({"max_steps": 11}, 8), ({"max_steps": 1}, 0)],
)
def test_weights_switch_in_runs_of_any_length(length: dict[str, int], first: int) -> None:
    """An epoch has 8 updates; 0.8 of 8, 16, 40, 11 and 1 fall into updates 6, 12, 32, 8 and 0."""
    run = moons_run("ldam-drw", **({"epochs": None} | length))
    assert updates_with_weights(run) == list(range(first, run.updates))


@pytest.mark.parametrize(("switch", "switched"), [(0, list(range(STEPS))), (1, [])])
def test_weights_from_the_start_or_never(switch: int, switched: list[int]) -> None:
    assert updates_with_weights(moons_run(f"ldam-drw:switch={switch}", epochs=1)) == switched


def test_published_numbers() -> None:
    torch.testing.assert_close(published_weights(torch.tensor([100, 10])), torch.tensor([0.182563, 1.817437]))


def test_resumed_before_and_after_the_switch(tmp_path: Path) -> None:
    whole = assert_resumes(tmp_path, "ldam-drw:switch=0.67", [5, 2 * STEPS + 3])
    weights = load_checkpoint(whole.last)["method"]["loss.weight"]
    assert weights[1] > 1.5  # the rare moon
    plain = metrics(moons_trained(tmp_path / "ldam", "ldam"))
    deferred = metrics(whole)
    assert [line["loss"] for line in deferred[:2]] == [line["loss"] for line in plain[:2]]
    assert deferred[2]["loss"] != plain[2]["loss"]


@pytest.mark.parametrize("length", [{"epochs": 2}, {"epochs": None, "max_steps": 16}])
def test_resumed_around_a_switch_in_mid_epoch(length: dict[str, int], tmp_path: Path) -> None:
    whole = assert_resumes(tmp_path, "ldam-drw", [11, 12, 13], **length)
    weights = load_checkpoint(whole.last)["method"]["loss.weight"]
    assert weights[1] > 1.5


def test_a_switch_beyond_the_end_is_rejected() -> None:
    with pytest.raises(ValueError, match="switch must be in"):
        methods.build("ldam-drw:switch=160", num_classes=2, class_counts=[9, 1])
