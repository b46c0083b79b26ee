"""Post-hoc logit adjustment: plain training, then a shift of the logits in the bias of the head."""

from pathlib import Path

import pytest
import torch
from method_cases import STEPS, assert_resumes, metrics, moons_run, moons_trained

from classgap import methods
from classgap.engine.storage.checkpoint import load_weights


def test_it_shifts_the_logits_of_plain_training(tmp_path: Path) -> None:
    plain = moons_trained(tmp_path / "erm", "erm")
    adjusted = moons_trained(tmp_path / "adjusted", "post-hoc-logit-adjustment:tau=0.5")
    counts = moons_run("erm").train_counts.double()
    shift = -0.5 * (counts / counts.sum()).log().float()
    before, after = (_predictions(each.path) for each in (plain, adjusted))
    torch.testing.assert_close(after["logits"], before["logits"] + shift)
    torch.testing.assert_close(after["head_bias"], before["head_bias"] + shift)
    assert torch.equal(after["features"], before["features"])
    assert metrics(adjusted)[:-1] == metrics(plain)[:-1]  # the training itself is plain


def test_tau_0_is_plain(tmp_path: Path) -> None:
    plain = load_weights(moons_trained(tmp_path / "erm", "erm").model)
    other = load_weights(moons_trained(tmp_path / "other", "post-hoc-logit-adjustment:tau=0").model)
    assert all(torch.equal(tensor, other[name]) for name, tensor in plain.items())


def test_the_epoch_is_chosen_with_adjusted_logits() -> None:
    run = moons_run("post-hoc-logit-adjustment", val_fraction=0.25)
    during = run.scores(run.validation).logits_NK
    raw = run.model.eval()(torch.as_tensor(run.validation.inputs[torch.arange(len(run.validation))]))
    torch.testing.assert_close(during, raw.detach() + run.method.shift)
    run.method.finish(run)
    torch.testing.assert_close(run.scores(run.validation).logits_NK, during)


def test_stopped_and_resumed(tmp_path: Path) -> None:
    assert_resumes(tmp_path, "post-hoc-logit-adjustment", [3, 3 * STEPS])


def test_a_head_without_bias_is_rejected() -> None:
    run = moons_run("erm")
    run.tap.head.bias = None
    with pytest.raises(ValueError, match="Use logit-adjustment"):
        methods.build("post-hoc-logit-adjustment", num_classes=2, class_counts=[9, 1]).prepare(run)


def _predictions(path: Path) -> dict[str, torch.Tensor]:
    return load_weights(path / "predictions.safetensors")
