"""Prediction files of a run: each from the saved weights, for its own samples."""

from pathlib import Path

import pytest
import torch
from training_cases import config, metrics, new_run, stopped_after, trained, trained_by_two

from classgap import Audit
from classgap.data.dataset import Split
from classgap.engine import Run, RunDirectory, train
from classgap.engine.storage.checkpoint import load_weights
from classgap.testing import Processes

STORED = {"val_fraction": 0.2, "save_train_features": True, "audit": False}


def evaluated_directly(run: Run, split: Split) -> tuple[torch.Tensor, torch.Tensor]:
    """Apply the two layers of the network to the unaugmented samples."""
    pixels = split.inputs[torch.arange(len(split))].flatten(1).float() / 255
    assert run.mean is not None
    assert run.std is not None
    _, hidden, _, head = run.model
    features = torch.relu(hidden((pixels - run.mean[0]) / run.std[0]))
    return head(features), features


def test_held_out_and_training_predictions_are_those_of_the_saved_weights(tmp_path: Path) -> None:
    directory = trained(tmp_path / "run", monitor="hard", augment="none", **STORED)
    run = new_run(monitor="hard", **STORED)
    run.model.load_state_dict(load_weights(directory.model))
    assert run.validation is not None
    for path, split in (
        (directory.predictions, run.data.test),
        (directory.val_predictions, run.validation),
        (directory.train_predictions, run.train),
    ):
        stored = load_weights(path)
        logits, features = evaluated_directly(run, split)
        torch.testing.assert_close(stored["logits"], logits.detach(), rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(stored["features"], features.detach().half(), rtol=2e-3, atol=2e-3)
        assert torch.equal(stored["targets"], split.targets)
        assert torch.equal(stored["index"], split.index)
        assert torch.equal(stored["train_counts"], run.train.class_counts(10))
        assert torch.equal(stored["head_weight"], run.tap.head.get_parameter("weight").detach())
    trained_on, held_out = (
        set(load_weights(path)["index"].tolist()) for path in (directory.train_predictions, directory.val_predictions)
    )
    assert trained_on | held_out == set(run.data.train.index.tolist())
    assert not trained_on & held_out


def test_the_files_have_the_fields_of_the_test_file_and_can_be_audited(tmp_path: Path) -> None:
    directory = trained(tmp_path / "run", monitor="hard", **STORED)
    test, held_out, training = (
        load_weights(path) for path in (directory.predictions, directory.val_predictions, directory.train_predictions)
    )
    assert held_out.keys() == test.keys()
    assert training.keys() == test.keys() - {"train_predictions", "train_targets"}
    assert torch.equal(held_out["train_predictions"], training["logits"].argmax(dim=1))
    lines = metrics(directory)
    chosen = lines[lines[-1]["chosen_epoch"] - 1]
    audit = Audit.from_file(directory.val_predictions)
    assert audit.overall.accuracy == pytest.approx(chosen["val_accuracy"])
    assert audit.groups["hard"].accuracy == pytest.approx(chosen["val_hard"])
    assert Audit.from_file(directory.train_predictions).overall.accuracy == pytest.approx(lines[-1]["train_accuracy"])


def test_files_are_written_only_for_samples_that_are_held_out_or_requested(tmp_path: Path) -> None:
    plain = trained(tmp_path / "plain", epochs=1, audit=False)
    assert not plain.val_predictions.exists()
    assert not plain.train_predictions.exists()
    without = trained(tmp_path / "without", epochs=1, audit=False, val_fraction=0.2, save_features=False)
    assert without.val_predictions.exists()
    assert "features" not in load_weights(without.val_predictions)


def test_overwrite_removes_the_files(tmp_path: Path) -> None:
    trained(tmp_path / "run", epochs=1, **STORED)
    settings = config(out=tmp_path / "run", epochs=1, audit=False)
    directory = RunDirectory(train(settings, overwrite=True, quiet=True).run_dir)
    assert directory.predictions.exists()
    assert not directory.val_predictions.exists()
    assert not directory.train_predictions.exists()


def test_an_interrupted_run_stores_the_same(tmp_path: Path) -> None:
    settings = {"epochs": 4, "method": "mr2", "monitor": "hard", **STORED}
    whole = trained(tmp_path / "whole", **settings)
    with stopped_after(20):
        trained(tmp_path / "stopped", **settings)
    assert not (tmp_path / "stopped" / "val_predictions.safetensors").exists()
    resumed = trained(tmp_path / "stopped", **settings)
    for name in ("predictions", "val_predictions", "train_predictions"):
        assert getattr(resumed, name).read_bytes() == getattr(whole, name).read_bytes()


def test_two_processes_store_every_sample_once(tmp_path: Path, processes: Processes) -> None:
    settings = {"epochs": 2, "val_fraction": 0.2, "save_train_features": True, "class_stats": True, "audit": False}
    alone = trained(tmp_path / "one", **settings)
    together = trained_by_two(processes, tmp_path / "two", **settings)
    for name in ("val_predictions", "train_predictions"):
        one, two = load_weights(getattr(alone, name)), load_weights(getattr(together, name))
        assert torch.equal(one["index"], two["index"])
        assert torch.equal(one["targets"], two["targets"])
        torch.testing.assert_close(one["logits"], two["logits"], rtol=1e-3, atol=1e-3)
        torch.testing.assert_close(one["features"], two["features"], rtol=1e-2, atol=5e-3)
    for one, two in zip(alone.read_class_stats(), together.read_class_stats(), strict=True):
        assert (one["stage"], one["epoch"]) == (two["stage"], two["epoch"])
        for name in ("spread", "mean_norm", "accuracy"):
            assert one[name] == pytest.approx(two[name], rel=5e-3, abs=5e-3)
