"""Methods of catalog_robust: losses, bias initialization, and passes over the training set."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from method_cases import STEPS, assert_resumes, copied, first_batch, moons_run

from classgap import methods
from classgap.engine.storage.checkpoint import load_checkpoint
from classgap.methods.catalog_robust import ENTRIES
from classgap.methods.entry import MethodEntry

LOSSES = {
    "label-smoothing": "label-smoothing:smoothing=0",
    "feature-norm": "feature-norm:strength=0",
    "logit-adjustment": "logit-adjustment:tau=0",
    "eql": "eql:drop=0",
    "focal": "focal:gamma=0",
    "cmic-dl": "cmic-dl:concentrate=0:separate=0",
    "csr": "csr:strength=0",
}


@pytest.mark.parametrize("name", LOSSES)
def test_reduces_to_cross_entropy(name: str) -> None:
    run = moons_run(LOSSES[name])
    batch = first_batch(run)
    value = run.method.objective(run, batch)
    torch.testing.assert_close(value, F.cross_entropy(run.forward(batch.inputs), batch.labels))
    changed = moons_run(name)
    if name not in ("eql", "csr"):  # no class is rare by default, nothing was confused yet
        assert not torch.allclose(changed.method.objective(changed, batch), value)


def test_defaults_match_the_sources() -> None:
    given = {"num_classes": 2, "class_counts": [100, 10]}
    assert methods.build("label-smoothing", **given).loss.label_smoothing == 0.1
    assert methods.build("eql", **given).loss.threshold == 0.005
    torch.testing.assert_close(methods.build("cb-focal", **given).loss.weight, torch.tensor([0.182563, 1.817437]))
    for name in ("logit-adjustment", "balanced-softmax"):
        loss = methods.build(name, num_classes=2, class_counts=[90, 10]).loss
        value = loss(torch.zeros(2, 2), torch.tensor([0, 1]))
        assert value.item() == pytest.approx((0.105361 + 2.302585) / 2, rel=1e-5)


@pytest.mark.parametrize(
    "method",
    ["label-smoothing", "feature-norm", "balanced-softmax", "eql:threshold=0.5", "cb-focal"],
)
def test_losses_train_and_resume(method: str, tmp_path: Path) -> None:
    assert_resumes(tmp_path, method, [3, 17])


@pytest.mark.parametrize("method", ["group-dro:step=0.1", "cmic-dl", "fair-dro:radius=0.3", "csr"])
def test_methods_with_memory_train_and_resume(method: str, tmp_path: Path) -> None:
    whole = assert_resumes(tmp_path, method, [3, STEPS, 2 * STEPS + 5])
    ours, theirs = (load_checkpoint(path / "checkpoints" / "last.pt")["method"] for path in _both(whole.path))
    assert ours
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())


def _both(whole: Path) -> tuple[Path, Path]:
    return whole, whole.parent / "stopped"


# Focal


def test_the_sigmoid_form_starts_at_one_in_k_and_does_not_decay_its_bias() -> None:
    run = moons_run("focal:form=sigmoid", data="digits", model="mlp:width=8")
    bias = run.tap.head.bias
    assert torch.sigmoid(bias.detach()).tolist() == pytest.approx([0.1] * 10)
    decay = {parameter: group["weight_decay"] for group in run.optimizer.param_groups for parameter in group["params"]}
    assert decay.pop(bias) == 0
    assert set(decay.values()) == {run.config.weight_decay}
    assert len(decay) == len(list(run.model.parameters())) - 1
    plain, softmax = (copied(moons_run(method).model) for method in ("erm", "focal"))
    assert all(torch.equal(tensor, softmax[name]) for name, tensor in plain.items())


# Weights from a pass over the training set


def test_fair_dro_updates_weights_from_the_class_losses_of_the_training_set() -> None:
    run = moons_run("fair-dro:radius=0.3", epochs=4)
    q = np.full(2, 0.5)
    for epoch in (0, 1, 3):
        run.position.epoch = epoch
        run.method.epoch_start(run)
        losses = _class_losses(run)
        deviation = losses - losses.mean()
        best = 0.5 + math.sqrt(2 * 0.3 / 2) * deviation / np.linalg.norm(deviation)
        q = q + (1 - epoch / 4) * (best - q)
        assert run.method.loss.weights.tolist() == pytest.approx(q.tolist(), rel=1e-5)
        run.method.step(run, first_batch(run))
        assert run.model.training


def _class_losses(run) -> np.ndarray:
    """Sample by sample, in plain numbers."""
    run.model.eval()
    losses: list[list[float]] = [[], []]
    for row in range(len(run.train)):
        logits = run.model(torch.as_tensor(run.train.inputs[torch.tensor([row])]))[0].detach().double()
        label = int(run.train.targets[row])
        losses[label].append(float(torch.logsumexp(logits, 0) - logits[label]))
    run.model.train()
    return np.array([np.mean(each) for each in losses])


def test_fair_dro_with_radius_0_is_the_mean_of_class_means() -> None:
    run = moons_run("fair-dro:radius=0")
    run.method.epoch_start(run)
    batch = first_batch(run)
    value = run.method.objective(run, batch)
    losses = F.cross_entropy(run.forward(batch.inputs), batch.labels, reduction="none")
    torch.testing.assert_close(value, torch.stack([losses[batch.labels == k].mean() for k in (0, 1)]).mean())


def test_csr_weighs_by_the_confusions_of_the_training_set() -> None:
    run = moons_run("csr", data="digits", model="mlp:width=8")
    run.method.epoch_start(run)
    scores = run.scores(run.train)
    confusion = np.zeros((10, 10))
    for logits, label in zip(scores.logits_NK.clone(), scores.targets_N, strict=True):
        logits[label] *= 0.9
        confusion[int(logits.argmax()), int(label)] += 1
    np.fill_diagonal(confusion, 0)
    left, _, right = np.linalg.svd(confusion)
    mode = np.outer(left[:, 0], right[0])
    expected = 2 * (mode - mode.min()) / (mode.max() - mode.min()) + 0.01
    np.testing.assert_allclose(run.method.loss.pair_weights.numpy(), expected, rtol=1e-4, atol=1e-5)


def test_group_dro_moves_to_the_worst_class() -> None:
    run = moons_run("erm")
    for batch in run.batches.epoch(0):
        run.method.step(run, batch)
    before = _class_losses(run)
    assert before[1] > before[0] + 0.5  # the rare moon, which plain training neglects
    run.method = methods.build("group-dro:step=0.1", num_classes=2)
    for batch in run.batches.epoch(1):
        run.method.step(run, batch)
    assert run.method.loss.weights()[1] > 0.6
    assert _class_losses(run)[1] < before[1] - 0.2


def _weights_after_a_pass(method: str) -> torch.Tensor:
    run = moons_run(method)
    run.method.epoch_start(run)
    return next(iter(run.method.loss.buffers()))


@pytest.mark.parametrize("method", ["fair-dro", "csr"])
def test_two_processes_pass_over_the_full_training_set(method: str, processes) -> None:
    first, second = processes.run(_weights_after_a_pass, method)
    assert torch.equal(first, second)
    torch.testing.assert_close(first, _weights_after_a_pass(method))
    assert first.std() > 0


# The catalog


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_every_default_has_an_origin(entry: MethodEntry) -> None:
    assert entry.origins.keys() == entry.options().keys()
    assert all(origin.startswith(("paper", "published code", "ours")) for origin in entry.origins.values())
