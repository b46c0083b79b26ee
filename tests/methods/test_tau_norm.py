"""τ-normalization: the normalized head, and the selection of τ."""

from pathlib import Path

import pytest
import torch
from method_cases import assert_resumes, moons_run, moons_trained
from training_cases import metrics, new_run

from classgap.audit import read_predictions
from classgap.engine import Scores
from classgap.engine.storage.checkpoint import load_weights

HELD = {"val_fraction": 0.25}


def test_zero_is_the_model_without_bias(tmp_path: Path) -> None:
    plain = load_weights(moons_trained(tmp_path / "plain", "erm").model)
    run = moons_trained(tmp_path / "normalized", "tau-norm:tau=0")
    changed = load_weights(run.model)
    assert torch.equal(changed["3.weight"], plain["3.weight"])
    assert not changed["3.bias"].any()
    assert bool(plain["3.bias"].any())
    predictions = read_predictions(run.path)
    without_bias = predictions.features_ND.float() @ plain["3.weight"].T
    torch.testing.assert_close(predictions.logits_NK, without_bias, rtol=1e-2, atol=1e-2)  # features in half precision


def test_one_has_unit_rows(tmp_path: Path) -> None:
    weights = load_weights(moons_trained(tmp_path / "run", "tau-norm:tau=1").model)
    torch.testing.assert_close(weights["3.weight"].norm(dim=1), torch.ones(2))


@pytest.mark.parametrize("select", ["balanced", "accuracy"])
def test_tau_is_the_best_on_held_out_samples(select: str) -> None:
    run = new_run(data="digits:imbalance=20", method=f"tau-norm:monitor={select}", **HELD)
    for batch in [*run.batches.epoch(0), *run.batches.epoch(1)]:
        run.method.step(run, batch)
    scores, weight = run.scores(run.validation, features=True), run.tap.head.weight.detach().clone()
    metrics_by_tau = {}
    for tenth in range(21):
        tau = tenth / 10
        rows = torch.stack([row / row.norm() ** tau for row in weight])
        made = Scores(scores.features_ND @ rows.T, scores.features_ND, scores.targets_N)
        metrics_by_tau[tau] = made.accuracies()[select]
    assert len(set(metrics_by_tau.values())) > 1
    run.method.finish(run)
    chosen = run.method.findings()["tau"]
    assert metrics_by_tau[chosen] == max(metrics_by_tau.values())
    assert chosen == min(tau for tau, metric in metrics_by_tau.items() if metric == metrics_by_tau[chosen])
    norms = weight.norm(dim=1, keepdim=True)
    torch.testing.assert_close(run.tap.head.weight.detach(), weight / norms**chosen)


def test_missing_held_out_samples_are_rejected() -> None:
    with pytest.raises(ValueError, match="--val-fraction"):
        moons_run("tau-norm")


def test_stopped_on_the_way_and_the_last_line_reports_tau(tmp_path: Path) -> None:
    run = assert_resumes(tmp_path, "mr2+tau-norm", [5, 17], **HELD)
    assert 0 <= metrics(run)[-1]["tau"] <= 2
