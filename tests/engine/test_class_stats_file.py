"""--class-stats: spread, mean norm and accuracy of each class by epoch, for any method."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from training_cases import metrics, new_run, stopped_after, trained

from classgap.audit import Audit
from classgap.engine import RunDirectory
from classgap.engine.class_stats import ClassStatistics, compute_class_stats

SETTINGS = {"class_stats": True, "audit": False, "save_train_features": True}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return trained(tmp_path_factory.mktemp("class-stats") / "run", **SETTINGS)


def slow_statistics(features: np.ndarray, targets: np.ndarray, correct: np.ndarray, classes: int) -> dict:
    values: dict[str, list] = {"spread": [], "mean_norm": [], "accuracy": []}
    for k in range(classes):
        points = features[targets == k]
        values["spread"].append(np.sqrt(points.var(axis=0, ddof=1).sum()) if len(points) > 1 else None)
        values["mean_norm"].append(np.linalg.norm(points.mean(axis=0)) if len(points) else None)
        values["accuracy"].append(correct[targets == k].mean() if len(points) else None)
    return values


def test_batches_add_up_and_large_features_do_not_cancel() -> None:
    rng = np.random.default_rng(0)
    features, targets = rng.normal(size=(50, 3)) + 1e6, rng.integers(0, 4, 50)
    targets[targets == 2], targets[0] = 1, 3
    targets[1:][targets[1:] == 3] = 0  # no sample of class 2, one of class 3
    predicted = rng.integers(0, 4, 50)
    found = ClassStatistics.zeros(5, 3)
    for rows in np.array_split(np.arange(50), 7):
        found.add(*(torch.from_numpy(values[rows]) for values in (features, targets, predicted)))
    expected = slow_statistics(features, targets, predicted == targets, 5)
    for name, values in found.to_dict().items():
        assert [value is None for value in values] == [value is None for value in expected[name]]
        for value, wanted in zip(values, expected[name], strict=True):
            assert value is None or value == pytest.approx(wanted, rel=1e-6)


def test_there_is_a_line_per_epoch_and_the_last_agrees_with_an_audit(whole: RunDirectory) -> None:
    lines = whole.read_class_stats()
    assert [(line["stage"], line["epoch"]) for line in lines] == [
        (line["stage"], line["epoch"]) for line in whole.read_metrics()[:-1]
    ]
    audit = Audit.from_file(whole.train_predictions)
    for entry in audit.classes:
        for name in ("spread", "mean_norm", "accuracy"):
            # stored features are in half precision
            assert lines[-1][name][entry.index] == pytest.approx(getattr(entry, name), rel=2e-3)


def test_they_do_not_change_the_run(whole: RunDirectory, tmp_path: Path) -> None:
    plain = trained(tmp_path / "plain", audit=False, save_train_features=True)
    assert metrics(plain) == metrics(whole)
    assert plain.read_class_stats() == []
    assert not plain.class_stats.exists()


def test_an_interrupted_run_writes_each_epoch_once(whole: RunDirectory, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with stopped_after(20):  # in the second epoch
        trained(out, **SETTINGS)
    stopped = RunDirectory(out)
    assert len(stopped.read_class_stats()) == 1
    # As after a kill: epochs that were written after the last checkpoint, and half a line.
    with stopped.class_stats.open("a") as file:
        file.write(json.dumps({"stage": "train", "epoch": 2, "spread": []}) + '\n{"stage": "tr')
    assert trained(out, **SETTINGS).class_stats.read_bytes() == whole.class_stats.read_bytes()


def test_the_setting_of_a_stored_run_cannot_change(whole: RunDirectory) -> None:
    with pytest.raises(ValueError, match="class_stats"):
        trained(whole.path, **SETTINGS | {"class_stats": False})


@pytest.mark.parametrize("method", ["crt", "lff", "mr2+tau-norm:tau=1"])
def test_methods_with_stages_or_two_networks(method: str, tmp_path: Path) -> None:
    run = trained(tmp_path / "run", method=method, epochs=1, class_stats=True, audit=False)
    lines = run.read_class_stats()
    assert [line["stage"] for line in lines] == [line["stage"] for line in run.read_metrics()[:-1]]
    assert all(len(line["spread"]) == 10 and min(line["spread"]) > 0 for line in lines)


def test_overwriting_removes_them(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", epochs=1, class_stats=True, audit=False)
    assert run.class_stats.exists()
    run._remove_run()
    assert not run.class_stats.exists()


def test_features_are_those_that_the_head_sees() -> None:
    run = new_run()
    found = compute_class_stats(run, run.train).to_dict()
    scores = run.scores(run.train, features=True)
    correct = (scores.logits_NK.argmax(1) == scores.targets_N).double().numpy()
    expected = slow_statistics(scores.features_ND.double().numpy(), scores.targets_N.numpy(), correct, 10)
    for name, values in expected.items():
        assert found[name] == pytest.approx(values, rel=1e-5)
