"""A training as a plan asks for it, in a folder that goes when all is read."""

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

loaded = functools.cache(load)


@contextmanager
def trained(settings: dict[str, Any], seed: int) -> Iterator[RunDirectory]:
    """What a training with the settings of ``classgap train`` has written."""
    with tempfile.TemporaryDirectory() as folder:
        config = TrainConfig(**parse_settings(settings), seed=seed, out=Path(folder) / "run", report=False)
        yield RunDirectory(train(config, data=loaded(config.data), quiet=True).run_dir)
