"""LGM: the logits are distances to class means, and the margin grows."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from method_cases import assert_resumes, first_batch, moons_run, moons_trained
from training_cases import metrics

from classgap.losses import GaussianMixtureHead


def test_logits_are_distances_to_the_class_means() -> None:
    run = moons_run("lgm")
    inputs = first_batch(run).inputs
    logits = run.forward(inputs)
    means = run.tap.head.weight
    for i in range(5):
        for k in range(2):
            expected = -0.5 * (run.tap.features[i] - means[k]).square().sum()
            torch.testing.assert_close(logits[i, k], expected)
    assert any(means is each for group in run.optimizer.param_groups for each in group["params"])


def test_learned_variances() -> None:
    head = moons_run("lgm:variances=learned:log-determinant=no").tap.head
    assert isinstance(head, GaussianMixtureHead)
    assert head.log_variance is not None
    assert head.bias is None
    assert moons_run("lgm:variances=learned").tap.head.bias is not None


def test_without_margin_and_likelihood_it_is_cross_entropy_of_distances() -> None:
    run = moons_run("lgm:margin=0:largest=0:strength=0")
    batch = first_batch(run)
    value = run.method.objective(run, batch)
    torch.testing.assert_close(value, F.cross_entropy(run.model(batch.inputs), batch.labels))


def test_the_margin_doubles_until_it_is_largest() -> None:
    run = moons_run("lgm:margin=0.1:largest=0.5:doubling=0.25", max_steps=16, epochs=None)
    seen = []
    for batch in [*run.batches.epoch(0), *run.batches.epoch(1)]:
        run.method.step(run, batch)
        run.position.after_step()
        seen.append(run.method.loss.margin)
    assert seen == pytest.approx([0.1] * 4 + [0.2] * 4 + [0.4] * 4 + [0.5] * 4)


def test_it_trains_and_resumes(tmp_path: Path) -> None:
    assert_resumes(tmp_path, "lgm:variances=learned", [5, 17])
    run = moons_trained(tmp_path / "long", "lgm", epochs=30, data="two-moons:n_train=512:n_test=200:tail_fraction=0.4")
    assert metrics(run)[-1]["test_accuracy"] > 0.85


def test_wrong_options() -> None:
    with pytest.raises(ValueError, match=r"largest must be a finite number >= 0\.2"):
        moons_run("lgm:margin=0.2:largest=0.1")
    with pytest.raises(ValueError, match="variances"):
        moons_run("lgm:variances=some")
