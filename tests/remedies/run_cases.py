"""Small finished runs on embedded data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from classgap.engine import TrainConfig, train
from classgap.engine.storage.checkpoint import load_weights

DIGITS: dict[str, Any] = {
    "data": "digits",
    "model": "mlp:width=16",
    "epochs": 2,
    "batch_size": 64,
    "lr": 0.05,
    "val_fraction": 0.2,
    "report": False,
}


def trained(out: Path, **settings: Any) -> Path:
    """Train a small run to the end and return its directory."""
    return train(TrainConfig(out=out, **(DIGITS | settings)), quiet=True).run_dir


def stored(file: Path) -> dict[str, Any]:
    """Tensors of a file of a run."""
    return dict(load_weights(file))
