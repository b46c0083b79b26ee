"""DRO-LT: three stages, centroids by a pass over the training set, and the one-stage form."""

from pathlib import Path

import pytest
import torch
from method_cases import STEPS, assert_resumes, copied, first_batch, moons_run
from training_cases import metrics, new_run

from classgap import methods
from classgap.data.sampling.orders import ClassAwareOrder, ClassBalancedOrder, RandomOrder
from classgap.engine import Run


def at_stage(number: int, method: str = "dro-lt", **settings) -> Run:
    run = moons_run(method, **settings)
    run.position.stage = number
    run.begin_stage()
    run.method.epoch_start(run)
    run.model.train()
    return run


def changed_by_a_step(run: Run) -> set[str]:
    before = copied(run.model)
    run.method.step(run, first_batch(run))
    return {name for name, tensor in run.model.state_dict().items() if not torch.equal(tensor, before[name])}


ENCODER, HEAD = {"1.weight", "1.bias"}, {"3.weight", "3.bias"}


@pytest.mark.parametrize(("stage", "trained"), [(0, ENCODER | HEAD), (1, ENCODER), (2, HEAD)])
def test_trained_parameters_of_each_stage(stage: int, trained: set[str]) -> None:
    run = at_stage(stage)
    assert changed_by_a_step(run) == trained
    assert run.optimizer.param_groups[0]["lr"] == pytest.approx([0.05, 0.05 * 0.05, 0.05 * 0.1][stage])


def test_centroids_are_the_class_means_of_a_pass() -> None:
    run = at_stage(1)
    features = []
    for row in range(len(run.train)):  # one by one, by the layers themselves
        hidden = run.model[1](run.train.inputs[row][None])
        features.append(run.model[2](hidden)[0].detach())
    for k in range(2):
        mean = torch.stack([each for each, y in zip(features, run.train.targets, strict=True) if y == k]).mean(dim=0)
        torch.testing.assert_close(run.method.loss.centroids.means[k], mean)


def test_the_robustness_is_learned_in_the_second_stage_only() -> None:
    run = at_stage(1)
    epsilon = run.method.loss.epsilon
    assert any(epsilon is each for group in run.optimizer.param_groups for each in group["params"])
    run.method.step(run, first_batch(run))
    assert bool((epsilon < 1).all())  # less is always better
    for stage in (0, 2):
        groups = at_stage(stage).optimizer.param_groups
        assert sum(len(group["params"]) for group in groups) == {0: 4, 2: 2}[stage]


def test_classes_are_drawn_equally_after_the_pretraining() -> None:
    assert isinstance(at_stage(0).order, RandomOrder)
    assert isinstance(at_stage(1).order, ClassBalancedOrder)
    many = new_run(data="digits", batch_size=16, method="dro-lt:per-class=2")
    many.position.stage = 1
    many.begin_stage()
    assert isinstance(many.order, ClassAwareOrder)
    assert first_batch(many).labels.unique(return_counts=True)[1].tolist() == [2] * 8


def test_layers_that_came_frozen_stay_frozen() -> None:
    run = moons_run("dro-lt")
    run.model[1].requires_grad_(False)
    run.method.prepare(run)
    run.begin_stage()
    assert not run.model[1].weight.requires_grad
    assert run.model[3].weight.requires_grad


def test_stopped_in_each_stage(tmp_path: Path) -> None:
    run = assert_resumes(tmp_path, "dro-lt", [5, 3 * STEPS + 3, 5 * STEPS, 5 * STEPS + 4])
    assert [line["stage"] for line in metrics(run)[:-1]] == ["pretraining"] * 3 + ["features"] * 2 + ["classifier"]


def test_one_stage(tmp_path: Path) -> None:
    assert_resumes(tmp_path, "dro-lt-joint", [5])
    loss = methods.build("dro-lt-joint:epsilon=0.5", num_classes=2, feature_dim=3, class_counts=[75, 25]).loss
    assert loss.squared
    assert loss.running
    torch.testing.assert_close(loss.epsilon, torch.tensor([0.5 / 0.75**0.5, 1.0]))
    assert not loss.by_class
