"""Inputs that hung, crashed or were trained on wrongly are rejected in one line, or handled."""

import os

import numpy as np
import pytest
import torch

from classgap.audit import Audit, AuditSettings, read_predictions
from classgap.audit.gate import gate
from classgap.audit.serialization import write_json
from classgap.cli.main import main
from classgap.data import load
from classgap.data.sources.folder import find_images, load_folder
from classgap.data.sources.generated import make_mnist1d, make_two_moons
from classgap.engine import TrainConfig
from classgap.losses import HybridContrastiveLoss, MR2Loss


@pytest.mark.parametrize("ending", ["npz", "csv", "safetensors", "parquet", "npy"])
def test_a_pipe_is_no_prediction_file(tmp_path, ending):
    os.mkfifo(tmp_path / f"p.{ending}")
    with pytest.raises(ValueError, match="pipe") as raised:
        read_predictions(tmp_path / f"p.{ending}")
    assert f"p.{ending}" in str(raised.value)


PIPES = {
    "config": ["train", "--config", "pipe"],
    "rules": ["gate", "pipe", "pipe", "--rules", "pipe"],
    "list": ["train", "--data", "list:pipe"],
    "table": ["train", "--data", "csv:pipe"],
    "features": ["train", "--data", "features:pipe"],
    "costs": ["fix", "ok.npz", "--costs", "pipe.json"],
    **{
        name: ["audit", "ok.npz", f"--{name}", "pipe.json"]
        for name in ("groups", "valid-labels", "superclasses", "hierarchy", "targets", "train-counts", "rank-by")
    },
}


@pytest.mark.parametrize("name", PIPES)
def test_a_pipe_is_no_settings_file(tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    for pipe in ("pipe", "pipe.json"):
        os.mkfifo(pipe)
    np.savez("ok.npz", targets=np.arange(6) % 2, logits=np.eye(6, 2))
    assert main(PIPES[name]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "pipe" in line
    assert "a pipe" in line


@pytest.mark.parametrize(("source", "name"), [("folder", "x.png"), ("text", "x.txt")])
def test_pipes_among_the_samples_are_reported(tmp_path, source, name):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        for i in range(4):
            os.mkfifo(tmp_path / folder / f"{i}{name}")
    with pytest.raises(ValueError, match=name):
        load(f"{source}:{tmp_path}:size=8" if source == "folder" else f"text:{tmp_path}:encoder=none")


def test_a_pipe_is_no_audit(tmp_path):
    os.mkfifo(tmp_path / "a.json")
    with pytest.raises(ValueError, match=r"a\.json: .*pipe"):
        Audit.load(tmp_path / "a.json")


def test_the_root_of_the_file_system_is_no_dataset():
    with pytest.raises(ValueError, match="root of the file system"):
        load_folder("/")


def test_folders_that_contain_themselves_are_read_once(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.png").write_bytes(b"")
    (tmp_path / "a" / "again").symlink_to(tmp_path / "a")
    assert find_images(tmp_path / "a") == [str(tmp_path / "a" / "x.png")]


@pytest.mark.parametrize("make", [make_mnist1d, make_two_moons])
def test_generated_data_are_bounded(make):
    with pytest.raises(ValueError, match="n_train must be at most"):
        make(n_train=10**12)
    with pytest.raises(ValueError, match="seed must be from 0"):
        make(seed=2**32)


def test_seeds_of_an_audit_fit_in_32_bits():
    assert AuditSettings(seed=2**32 - 1).seed == 2**32 - 1
    with pytest.raises(ValueError, match=str(2**32)):
        AuditSettings(seed=2**32)


@pytest.mark.parametrize("seed", [-1, 2**32, 2**64])
def test_seeds_of_runs_data_and_gates_fit_in_32_bits(seed):
    for name in ("seed", "split_seed"):
        with pytest.raises(ValueError, match=f"^{name} must be"):
            TrainConfig(data="digits", **{name: seed})
    with pytest.raises(ValueError, match=r"^data_seed must be"):
        load(f"digits:data_seed={seed}")
    found = Audit.from_predictions(targets=np.arange(40) % 2, predictions=np.arange(40) % 2)
    with pytest.raises(ValueError, match=r"^seed must be"):
        gate(found, found, max_gap=3, seed=seed)


@pytest.mark.parametrize("largest", [1e155, 1e300])
def test_huge_logits_are_rejected(largest):
    logits = np.eye(2)[np.arange(40) % 2]
    logits[7, 1] = largest
    with pytest.raises(ValueError, match="logits must be at most"):
        Audit.from_predictions(targets=np.arange(40) % 2, logits=logits)


@pytest.mark.parametrize("largest", [1e155, 1e300])
def test_huge_features_are_rejected(largest):
    features = np.ones((40, 3))
    features[7, 1] = largest
    with pytest.raises(ValueError, match="features must be at most"):
        Audit.from_predictions(targets=np.arange(40) % 2, predictions=np.arange(40) % 2, features=features)


def test_values_that_are_not_finite_name_file_and_field(tmp_path):
    with pytest.raises(ValueError, match=r"classes\[1\]\.accuracy is (nan|-?inf)") as raised:
        write_json(tmp_path / "a.json", {"classes": [{"accuracy": 1.0}, {"accuracy": float("nan")}]})
    assert "a.json" in str(raised.value)
    assert not (tmp_path / "a.json").exists()


def test_a_bank_filled_in_inference_mode_can_be_trained_on():
    loss = HybridContrastiveLoss(3, queue=8)
    logits, targets = torch.randn(4, 3), torch.tensor([0, 1, 2, 0])
    with torch.inference_mode():
        loss(logits, targets)
    assert not loss.queue.features.is_inference()
    leaf = logits.clone().requires_grad_()
    loss(leaf, targets).backward()
    assert leaf.grad.isfinite().all()


def test_a_memory_filled_in_inference_mode_can_be_trained_on():
    loss = MR2Loss(3, memory_size=8)
    logits, features, targets = torch.randn(4, 3), torch.randn(4, 5), torch.tensor([0, 1, 2, 0])
    with torch.inference_mode():
        loss(logits, targets, features=features)
    leaf = features.clone().requires_grad_()
    loss(logits, targets, features=leaf).backward()
    assert leaf.grad.isfinite().all()


def test_the_state_of_another_number_of_classes_is_rejected():
    stored = HybridContrastiveLoss(5, queue=8)
    stored(torch.randn(4, 5), torch.tensor([0, 1, 2, 0]))
    loss = HybridContrastiveLoss(7, queue=8)
    with pytest.raises(RuntimeError, match=r"queue\.features"):
        loss.load_state_dict(stored.state_dict())
    same = HybridContrastiveLoss(5, queue=8)
    same.load_state_dict(stored.state_dict())
    assert torch.equal(same.queue.features, stored.queue.features)
