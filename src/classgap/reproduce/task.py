"""One run of a cell, in a worker: train in its run directory, measure it, and return plain values."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from classgap._version import __version__
from classgap.audit.serialization import read_json
from classgap.engine import NonFiniteLossError, RunDirectory, TrainConfig, TrainingInterrupted
from classgap.engine.config import parse_settings
from classgap.engine.train import load_dataset
from classgap.engine.workers import SessionStop, train_in_worker
from classgap.reproduce.cells import PICTURES
from classgap.reproduce.metrics import measure_run

Status = Literal["finished", "stopped", "diverged", "impossible", "failed"]


@dataclass(frozen=True)
class Task:
    """Plain values that describe a run to a worker.

    Attributes:
        key: Key of the run.
        settings: Settings of the run, with its run directory.
        stop: File that stops the run when it no longer has the token.
        token: Token of the process that started the run.
        maps: Features to map: "test", "train" or the name of an earlier layer.
        corruptions: Whether to test on corrupted samples too.
    """

    key: str
    settings: Mapping[str, Any]
    stop: Path
    token: str
    maps: tuple[str, ...] = ()
    corruptions: bool = False


@dataclass(frozen=True)
class Outcome:
    """Plain values that a worker returns.

    Attributes:
        key: Key of the run.
        status: "finished", "stopped" (by the process that started it), "diverged" (the loss became infinite),
            "impossible" (data, weights or packages are missing) or "failed".
        found: Metrics, environment, version and training time of a finished run; of a diverged one, what is known.
        error: Reason for a failure.
    """

    key: str
    status: Status
    found: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""


def run_task(task: Task) -> Outcome:
    """Train a run, or resume it from its run directory, and measure it."""
    config = TrainConfig(**parse_settings(task.settings))
    assert config.out is not None
    try:
        train_in_worker(config, task.token, SessionStop(task.stop, task.token, "classgap reproduce"))
        directory = RunDirectory(config.out)
        lines = directory.read_metrics()
        data = load_dataset(config.data) if task.corruptions or set(task.maps) - set(PICTURES) else None
        found = {
            **_origin(config.out),
            "seconds": round(sum(line["timing"]["seconds"] for line in lines if "timing" in line), 1),
            **measure_run(config.out, data, task.maps, task.corruptions),
        }
    except TrainingInterrupted:
        return Outcome(task.key, "stopped")
    except NonFiniteLossError as failure:
        return Outcome(task.key, "diverged", _origin(config.out), str(failure))
    except ValueError as failure:  # settings were valid, so that the machine lacks data, weights or a package
        return Outcome(task.key, "impossible", error=str(failure))
    except Exception as failure:
        return Outcome(task.key, "failed", error=f"{type(failure).__name__}: {failure}")
    return Outcome(task.key, "finished", found)


def _origin(run: Path) -> dict[str, Any]:
    """Return the version, the hash of the sources and the environment of a run."""
    environment = RunDirectory(run).environment
    known = read_json(environment) if environment.is_file() else {}
    return {"version": __version__, "code": code_hash(), "environment": known}


@cache
def code_hash() -> str:
    """Return a hash of the sources of the package, which the version does not distinguish during development."""
    package = Path(str(resources.files("classgap")))
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:12]
