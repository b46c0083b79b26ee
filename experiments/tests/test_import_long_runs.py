"""Runs of the old version become entries of the store that recipes find."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import yaml

from classgap.engine import TrainConfig, train
from classgap.reproduce.catalog import load_recipe
from classgap.reproduce.cells import make_plan
from classgap.reproduce.results import collect
from classgap.reproduce.store import ResultStore

OLD = {  # as commit ce1e2db writes them
    "data": "folder:/data/cifar:size=32:lt=100",
    "model": "resnet32",
    "method": "elm:slack=sqrt-count:strength=0.01",
    "out": "/runs/lt-elm",
    "epochs": 256,
    "steps": None,
    "batch": 128,
    "optimizer": "sgd",
    "lr": 0.4,
    "momentum": 0.9,
    "weight_decay": 0.0001,
    "schedule": "step",
    "warmup": 15.0,
    "milestones": [96.0, 192.0, 224.0],
    "gamma": 0.1,
    "clip": None,
    "accumulate": 1,
    "precision": "bf16",
    "channels_last": True,
    "augment": "crop-flip",
    "sampling": "shuffled",
    "validation": 0.0,
    "select": "last",
    "interpolate": 1.0,
    "seed": 0,
    "save_every": 60.0,
    "report": True,
    "device": "auto",
}


@pytest.fixture(scope="module")
def script() -> ModuleType:
    path = Path(__file__).parents[1] / "import_long_runs.py"
    spec = importlib.util.spec_from_file_location("import_long_runs", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A finished run with settings of the old version; what it was trained on does not matter here."""
    run = tmp_path / "runs" / "lt-elm"
    train(TrainConfig(data="digits", model="mlp:width=8", epochs=1, out=run, audit=False), quiet=True)
    (run / "config.yaml").write_text(yaml.safe_dump(OLD))
    (run / "checksums.json").unlink()  # the old version has none
    return tmp_path / "runs"


def test_finished_runs_are_stored(script: ModuleType, runs: Path, tmp_path: Path, capsys) -> None:
    script.main([str(runs), "--results-dir", str(tmp_path / "store")])
    assert "stored as" in capsys.readouterr().out
    store = ResultStore(tmp_path / "store")
    (key,) = store.keys()
    final = json.loads((runs / "lt-elm" / "metrics.jsonl").read_text().splitlines()[-1])
    entry = store.get(key)
    assert entry is not None
    assert entry["metrics"]["balanced"] == pytest.approx(final["test_balanced"], rel=1e-5)
    assert entry["version"] == "ce1e2db"
    result = collect(make_plan(load_recipe("elm-table-2"), "full-200"), store)
    (ours,) = (each for each in result.entries if each.row == "ELM")
    assert ours.values == (pytest.approx(100 * final["test_balanced"], rel=1e-5),)
    assert ours.verdict == "not run"  # its baseline is missing
    with np.load(tmp_path / "store" / "predictions" / f"{key}.npz") as file:
        accuracy = np.mean(file["logits"].argmax(axis=1) == file["targets"])
    assert accuracy == pytest.approx(final["test_accuracy"])


def test_other_runs_are_left_alone(script: ModuleType, runs: Path, tmp_path: Path, capsys) -> None:
    config, metrics = runs / "lt-elm" / "config.yaml", runs / "lt-elm" / "metrics.jsonl"
    config.write_text(yaml.safe_dump({**OLD, "lr": 0.2}))
    script.main([str(runs), "--results-dir", str(tmp_path / "store")])
    assert "no recipe" in capsys.readouterr().out
    config.write_text(yaml.safe_dump(OLD))
    metrics.write_text("\n".join(metrics.read_text().splitlines()[:-1]) + "\n")
    script.main([str(runs), "--results-dir", str(tmp_path / "store")])
    assert "not finished (1 of 256 epochs)" in capsys.readouterr().out
    assert ResultStore(tmp_path / "store").keys() == []
