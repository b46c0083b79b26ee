"""Change that class offsets would make, against a direct computation."""

from pathlib import Path

import numpy as np
import pytest

from biased_predictions import biased
from classgap.audit import Audit, AuditSettings
from classgap.audit.diagnosis.counterfactuals import counterfactuals
from classgap.audit.diagnosis.offset_change import offset_change
from classgap.audit.io.predictions import Predictions


def by_loops(data: Predictions, after: np.ndarray, folds: np.ndarray) -> dict[str, float]:
    """Change of each third, one fold and one class at a time."""
    changes: dict[str, list[float]] = {"easy": [], "hard": []}
    for fold in range(5):
        accuracy = []
        for k in range(data.num_classes):
            rest = (folds != fold) & (data.targets_N == k)
            accuracy.append((data.predictions_N[rest] == k).mean())
        order = np.argsort(-np.array(accuracy), kind="stable")
        for name, members in (("easy", order[:3]), ("hard", order[-3:])):
            gains = []
            for k in members:
                held = (folds == fold) & (data.targets_N == k)
                gains.append((after[held] == k).mean() - (data.predictions_N[held] == k).mean())
            changes[name].append(float(np.mean(gains)))
    return {name: float(np.mean(values)) for name, values in changes.items()}


def test_change_matches_loops():
    data = Predictions.from_arrays(**biased(900, 0))
    found = counterfactuals(data, 0)
    assert found.decision_N is not None
    assert found.folds_N is not None
    change = offset_change(data, found, 0.95)
    assert change is not None
    expected = by_loops(data, found.decision_N, found.folds_N)
    assert change.hard == pytest.approx(expected["hard"])
    assert change.easy == pytest.approx(expected["easy"])
    overall = (found.decision_N == data.targets_N).mean() - (data.predictions_N == data.targets_N).mean()
    assert change.overall == pytest.approx(overall)
    assert change.hard_interval.low < change.hard < change.hard_interval.high
    assert change.hard > 0.1  # the bias costs the hard classes most


def test_interval_covers_the_change_on_other_samples():
    """Intervals of 90 % contain the mean over many draws about as often."""
    found = []
    for seed in range(60):
        data = Predictions.from_arrays(**biased(450, seed))
        change = offset_change(data, counterfactuals(data, 0), 0.9)
        assert change is not None
        found.append(change)
    mean = np.mean([change.hard for change in found])
    covered = np.mean([change.hard_interval.low <= mean <= change.hard_interval.high for change in found])
    assert covered >= 0.75


def test_audits_store_it_and_old_files_load_without_it(tmp_path: Path):
    arrays = biased(180, 0)
    audit = Audit.from_predictions(arrays["logits"], arrays["targets"])
    audit.save(tmp_path / "audit.json")
    assert Audit.load(tmp_path / "audit.json").offset_change == audit.offset_change
    old = audit.to_dict()
    del old["offset_change"], old["source"]
    loaded = Audit.from_dict(old)
    assert loaded.offset_change is None
    assert loaded.source is None


def test_labels_only_and_undiagnosed_audits_have_none():
    arrays = biased(180, 0)
    labels = Audit.from_predictions(predictions=arrays["logits"].argmax(1), targets=arrays["targets"])
    assert labels.offset_change is None
    quick = Audit.from_predictions(arrays["logits"], arrays["targets"], settings=AuditSettings(diagnose=False))
    assert quick.offset_change is None


def test_audited_files_are_named(tmp_path: Path):
    np.savez(tmp_path / "predictions.npz", **biased(90, 0))
    source = Audit.from_file(tmp_path / "predictions.npz").source
    assert source is not None
    assert (source.predictions, source.has_scores, source.run) == (str(tmp_path / "predictions.npz"), True, None)
