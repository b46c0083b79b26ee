"""Damaged files of a run are found before they are used, and training goes on from the checkpoint before."""

import contextlib
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from classgap._atomic_write import atomic_write_text
from classgap._text_checksums import CHECKSUMS, check_text, renew_checksum
from classgap.audit import read_predictions
from classgap.engine import RunDirectory, TrainConfig, train
from classgap.engine.errors import TrainingInterrupted
from classgap.engine.storage.checkpoint import load_checkpoint, load_weights, save_checkpoint, save_weights
from classgap.inference import load_run
from stop_after import StopAfter


def flip_bits(path: Path, count: int, seed: int) -> None:
    content = np.frombuffer(path.read_bytes(), dtype=np.uint8).copy()
    rng = np.random.default_rng(seed)
    for at in rng.integers(0, 8 * len(content), count):
        content[at // 8] ^= 1 << (at % 8)
    path.write_bytes(content.tobytes())


def equal(a: dict, b: dict) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("count", [1, 5])
def test_flipped_bits_are_found_or_harmless(tmp_path: Path, count: int):
    path, model = tmp_path / "last.pt", torch.nn.Linear(40, 30)
    state = {"a": torch.randn(2000), "b": {"c": torch.arange(500)}}
    refused = 0
    for seed in range(100):
        save_checkpoint(state, path)
        flip_bits(path, count, seed)
        try:
            found = load_checkpoint(path)
        except ValueError:
            refused += 1
        else:
            assert torch.equal(found["a"], state["a"])
            assert torch.equal(found["b"]["c"], state["b"]["c"])
    assert refused > 50
    weights = tmp_path / "model.safetensors"
    for seed in range(100):
        save_weights(model, weights)
        flip_bits(weights, count, seed)
        with contextlib.suppress(ValueError):
            assert equal(load_weights(weights), dict(model.state_dict()))


SETTINGS = {"data": "two-moons:n_train=128:n_test=64", "epochs": 6, "batch_size": 32, "audit": False}


def interrupted(out: Path, *stops: int, **settings) -> RunDirectory:
    for steps in stops:
        with pytest.raises(TrainingInterrupted):
            train(TrainConfig(**SETTINGS | settings, out=out), quiet=True, stop=StopAfter(steps))
    return RunDirectory(out)


def weights_and_metrics(out: Path) -> tuple[dict, list]:
    directory = RunDirectory(out)
    lines = [{key: value for key, value in line.items() if key != "timing"} for line in directory.read_metrics()]
    return load_weights(directory.model), lines


@pytest.mark.parametrize("settings", [{}, {"val_fraction": 0.2, "monitor": "accuracy"}])
def test_a_damaged_checkpoint_falls_back_to_the_one_before(tmp_path: Path, capfd, settings):
    train(TrainConfig(**SETTINGS | settings, out=tmp_path / "whole"), quiet=True)
    directory = interrupted(tmp_path / "run", 6, 7, **settings)
    assert load_checkpoint(directory.previous)["position"] != load_checkpoint(directory.last)["position"]
    middle = directory.last.stat().st_size // 2
    content = bytearray(directory.last.read_bytes())
    content[middle - 600 : middle + 600] = bytes(1200)
    directory.last.write_bytes(content)
    train(TrainConfig(**SETTINGS | settings, out=tmp_path / "run"), quiet=True)
    assert "resuming from the one before" in capfd.readouterr().err
    (ours, our_lines), (theirs, their_lines) = (weights_and_metrics(tmp_path / name) for name in ("run", "whole"))
    assert equal(ours, theirs)
    assert our_lines == their_lines


def test_both_checkpoints_damaged_is_an_error(tmp_path: Path):
    directory = interrupted(tmp_path / "run", 6, 7)
    for path in (directory.last, directory.previous):
        path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"last\.pt is damaged"):
        train(TrainConfig(**SETTINGS, out=tmp_path / "run"), quiet=True)


def test_missing_checkpoints_start_over_without_old_metrics(tmp_path: Path):
    directory = interrupted(tmp_path / "run", 14)
    directory.last.unlink()
    directory.previous.unlink()
    train(TrainConfig(**SETTINGS, out=tmp_path / "run"), quiet=True)
    assert [line.get("epoch") for line in directory.read_metrics()] == [1, 2, 3, 4, 5, 6, None]


@pytest.mark.parametrize("damage", ["[1, 2]", "{", "\x00"])
def test_a_damaged_line_of_metrics_is_named(tmp_path: Path, damage: str):
    train(TrainConfig(**SETTINGS, out=tmp_path / "run"), quiet=True)
    directory = RunDirectory(tmp_path / "run")
    lines = directory.metrics.read_text().splitlines()
    (directory.path / CHECKSUMS).unlink()
    directory.metrics.write_text("\n".join([lines[0], damage, *lines[2:]]) + "\n")
    with pytest.raises(ValueError, match=r"line 2 of .*metrics.jsonl"):
        directory.read_metrics()
    directory.metrics.write_text("\n".join([*lines[:3], json.dumps({"epoch": 4})[:5]]))  # killed while writing
    assert len(directory.read_metrics()) == 3


def test_damaged_predictions_are_not_audited(tmp_path: Path):
    train(TrainConfig(**SETTINGS, out=tmp_path / "run"), quiet=True)
    path = RunDirectory(tmp_path / "run").predictions
    before = read_predictions(tmp_path / "run")
    content = bytearray(path.read_bytes())
    content[-3] ^= 4
    path.write_bytes(content)
    with pytest.raises(ValueError, match="do not match the checksum"):
        read_predictions(tmp_path / "run")
    content[-3] ^= 4
    path.write_bytes(content)
    assert torch.equal(read_predictions(tmp_path / "run").logits_NK, before.logits_NK)


def describe(run: Path) -> dict:
    """Everything that is read from the text files and the metadata of a finished run."""
    directory, loaded, predictions = RunDirectory(run), load_run(run, device="cpu"), read_predictions(run)
    return {
        "settings": directory.stored_settings(),
        "metrics": directory.read_metrics(),
        "batch size": loaded.batch_size,
        "preprocessing": loaded.preprocessing.to_dict(),
        "class names": (loaded.class_names, predictions.class_names),
        "network": str(loaded.model),
    }


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("finished") / "run"
    train(TrainConfig(**SETTINGS, out=out), quiet=True)
    return out


@pytest.mark.parametrize(
    "name",
    ["config.yaml", "metrics.jsonl", "preprocessing.json", "checksums.json", "checkpoints/model.safetensors"],
)
def test_a_flipped_bit_of_a_run_is_found_or_harmless(finished: Path, name: str):
    expected, content = describe(finished), (finished / name).read_bytes()
    refused = 0
    try:
        for seed in range(25):
            flip_bits(finished / name, 1, seed)
            with contextlib.suppress(ValueError):
                refused += 1
                found = describe(finished)
                refused -= 1
                assert found == expected
            (finished / name).write_bytes(content)
    finally:
        (finished / name).write_bytes(content)
    assert refused >= 15


def test_edited_settings_are_used_without_checksums(finished: Path, tmp_path: Path):
    shutil.copytree(finished, tmp_path / "run")
    config = tmp_path / "run" / "config.yaml"
    config.write_text(config.read_text().replace("batch_size: ", "batch_size: 1"))
    with pytest.raises(ValueError, match=r"config\.yaml does not match its checksum.*checksums\.json"):
        load_run(tmp_path / "run")
    (tmp_path / "run" / CHECKSUMS).unlink()
    assert load_run(tmp_path / "run", device="cpu").config.batch_size != load_run(finished).config.batch_size


def test_a_killed_process_leaves_no_wrong_checksums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """End the process, in effect, before each replaced file: the files that are left can be read."""
    path = tmp_path / "config.yaml"
    writes = 0
    for last in range(9):
        with contextlib.suppress(KeyboardInterrupt):
            writes = 0

            def replace(source: object, target: object, last: int = last) -> None:
                nonlocal writes
                writes += 1
                if writes > last:
                    raise KeyboardInterrupt
                os.rename(source, target)

            monkeypatch.setattr("classgap._atomic_write.os.replace", replace)
            for text in ("lr: 0.1\n", "lr: 0.2\n", "lr: 0.3\n"):
                with renew_checksum(path):
                    atomic_write_text(path, text)
        check_text(path)
    assert writes == 8  # two for the first text, three for each that replaces one
    path.write_text("lr: 0.4\n")
    with pytest.raises(ValueError, match="does not match"):
        check_text(path)
