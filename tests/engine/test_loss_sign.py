"""Short real runs: is a network that was stopped early called under-trained, and a converged one not?"""

from pathlib import Path

import numpy as np
import pytest
from training_cases import trained

from classgap import Audit
from classgap.audit import read_predictions
from classgap.report.causes import cause_evidence


@pytest.fixture(scope="module")
def overlapping(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Six Gaussian classes; the last two nearly coincide, so their accuracy stays low however long one trains."""
    path, rng = tmp_path_factory.mktemp("data") / "gauss.npz", np.random.default_rng(0)
    means = 3 * np.eye(6, 10)
    means[5] = means[4] + 0.3
    targets = np.tile(np.arange(6), 200)
    train, test = ((means[targets] + rng.normal(size=(1200, 10))).astype(np.float32) for _ in range(2))
    np.savez(path, train_features=train, train_targets=targets, test_features=test, test_targets=targets)
    return f"features:{path}"


def audit_run(out: Path, data: str, **settings: object) -> tuple[Audit, float]:
    """Audit a run without features, so that no head can be refitted; and its training accuracy."""
    run = trained(out, data=data, model="mlp:width=32", save_features=False, audit=False, **settings)
    found = read_predictions(run.path)
    assert found.train_targets_M is not None
    return Audit.from_file(run.path), float((found.train_targets_M == found.train_predictions_M).mean())


def causes(audit: Audit) -> set[str]:
    return {cause.name for entry in audit.classes for cause in entry.diagnosis or ()}


@pytest.mark.parametrize(("schedule", "lr"), [("cosine", 0.002), ("constant", 0.001)])
def test_a_network_that_was_stopped_early(schedule: str, lr: float, overlapping: str, tmp_path: Path) -> None:
    settings = {"schedule": schedule, "lr": lr}
    audit, accuracy = audit_run(tmp_path / "short", overlapping, epochs=12, **settings)
    _, later = audit_run(tmp_path / "long", overlapping, epochs=36, **settings)
    found = [cause for entry in audit.classes for cause in entry.diagnosis or () if cause.name == "under-trained"]
    assert later > accuracy + 0.04  # training longer was right
    assert found
    for cause in found:
        assert f"{cause.details['loss_before']:.2f} to {cause.details['loss_after']:.2f}" in cause_evidence(cause)
        assert cause.details["epochs"] == 12


@pytest.mark.parametrize("schedule", ["cosine", "step", "constant"])
def test_a_converged_network(schedule: str, overlapping: str, tmp_path: Path) -> None:
    audit, accuracy = audit_run(tmp_path / "run", overlapping, epochs=20, lr=0.03, schedule=schedule)
    assert accuracy < 0.9  # low in the overlapping classes, on the training set too
    assert "under-trained" not in causes(audit)
    assert "overlap" in causes(audit)
