"""Small finished runs on embedded data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from classgap.engine import TrainConfig, train
from classgap.engine.storage.checkpoint import load_weights

DIGITS: dict[str, Any] = {
    "data": "digits",
    "model": "mlp:width=16",
    "epochs": 2,
    "batch_size": 64,
    "lr": 0.05,
    "val_fraction": 0.2,
    "audit": False,
}


@contextmanager
def short_refits() -> Iterator[None]:
    """Refit heads for a few steps, where it does not matter what they learn."""
    with pytest.MonkeyPatch.context() as patch:
        for limit in ("MIN_STEPS", "MAX_STEPS"):
            patch.setattr(f"classgap.remedies.heads.{limit}", 10)
        yield


def trained(out: Path, **settings: Any) -> Path:
    """Train a small run to the end and return its directory."""
    return train(TrainConfig(out=out, **(DIGITS | settings)), quiet=True).run_dir


def stored(file: Path) -> dict[str, Any]:
    """Tensors of a file of a run."""
    return dict(load_weights(file))
