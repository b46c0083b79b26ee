"""Train in a temporary directory."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from classgap.data import load
from classgap.engine import RunDirectory, TrainConfig, train
from classgap.engine.config import parse_settings

load_cached = functools.cache(load)


@contextmanager
def temporary_run(settings: dict[str, Any], seed: int) -> Iterator[RunDirectory]:
    """Train with settings of ``classgap train`` and yield the run directory."""
    with tempfile.TemporaryDirectory() as folder:
        config = TrainConfig(**parse_settings(settings), seed=seed, out=Path(folder) / "run", report=False)
        yield RunDirectory(train(config, data=load_cached(config.data), quiet=True).run_dir)
