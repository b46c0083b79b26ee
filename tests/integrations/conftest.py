"""Weights & Biases and MLflow without a network, in temporary folders."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _wandb_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_DIR": tmp_path}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    for name in ("WANDB_CACHE_DIR", "WANDB_DATA_DIR", "WANDB_CONFIG_DIR", "WANDB_ARTIFACT_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
