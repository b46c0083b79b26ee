"""The example of the loggers runs, and its audits can be read back."""

import importlib.util
from pathlib import Path

import pytest

import classgap as cg

SOURCE = Path(__file__).parents[2] / "examples" / "log_audit.py"


def test_both_trackers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    for name in ("WANDB_CACHE_DIR", "WANDB_DATA_DIR", "WANDB_CONFIG_DIR", "WANDB_ARTIFACT_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    spec = importlib.util.spec_from_file_location("log_audit", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main(["--to", "tensorboard", "wandb", "--epochs", "2", "--out", str(tmp_path)])
    first, second = (cg.Audit.load(tmp_path / "tensorboard" / "test" / step / "audit.json") for step in ("1", "2"))
    assert second.overall.accuracy > first.overall.accuracy
    assert len(list((tmp_path / "wandb").rglob("*.table.json"))) == 2
