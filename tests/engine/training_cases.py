"""Small training runs, in this process or as a command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from classgap.data import load
from classgap.engine import Run, RunDirectory, TrainConfig, TrainingInterrupted
from classgap.engine.defaults import resolve_config
from classgap.engine.run import Position
from classgap.engine.train import train
from classgap.testing import Processes

SMALL: dict[str, Any] = {"data": "digits", "model": "mlp:width=16", "epochs": 3, "batch_size": 64, "lr": 0.05}


def config(**settings: Any) -> TrainConfig:
    """Return the settings of a small run, by default without an audit, which takes longer than the training."""
    return TrainConfig(**(SMALL | {"audit": False} | settings))


def new_run(**settings: Any) -> Run:
    """Build a run that is ready for its first step."""
    wanted = config(**settings)
    data = load(wanted.data)
    run = Run(resolve_config(wanted, data), data, torch.device("cpu"))
    run.model.train()
    return run


def trained(out: Path, **settings: Any) -> RunDirectory:
    """Train a run to the end."""
    return RunDirectory(train(config(out=out, **settings), quiet=True).run_dir)


def trained_by_two(processes: Processes, out: Path, **settings: Any) -> RunDirectory:
    """Train a run to the end in two processes that are already there; starting ``torchrun`` takes many seconds."""
    processes.run(_train, config(out=out, **settings))
    return RunDirectory(out)


def _train(wanted: TrainConfig) -> None:
    train(wanted, quiet=True)


def metrics(directory: RunDirectory | Path) -> list[dict[str, Any]]:
    """Read metrics.jsonl without wall-clock times."""
    path = directory if isinstance(directory, Path) else directory.path
    lines = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "timing"} for line in lines]


def command(out: Path, *flags: str, processes: int = 1, **settings: Any) -> list[str]:
    """Return the command line of a small training run."""
    # After "--", torchrun does not take --monitor for an abbreviation of its own --monitor-interval.
    words = ["-m", *(["--"] if processes > 1 else []), "classgap", "train", "--out", str(out)]
    for name, value in (SMALL | {"audit": False} | settings).items():
        flag = name.replace("_", "-")
        words += [f"--{'' if value else 'no-'}{flag}"] if isinstance(value, bool) else [f"--{flag}", str(value)]
    launcher = [sys.executable]
    if processes > 1:
        launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    return [*launcher, *words, *flags]


def environment() -> dict[str, str]:
    return os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "80"}


def start(*args: Any, **settings: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(*args, **settings), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    )


def finish(process: subprocess.Popen[str], timeout: float = 120) -> tuple[int, str, str]:
    """Wait for a process; return exit code, output and errors."""
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out, err


def succeed(process: subprocess.Popen[str]) -> str:
    """Return the output of a process that must succeed."""
    code, out, err = finish(process)
    assert code == 0, f"exit code {code}\n{out}\n{err}"
    return out


@contextmanager
def stopped_after(steps: int) -> Iterator[None]:
    """Send SIGTERM after a number of steps, as a cluster scheduler does."""
    done = 0

    class Watched(Position):
        def after_step(self) -> None:
            nonlocal done
            super().after_step()
            done += 1
            if done == steps:
                signal.raise_signal(signal.SIGTERM)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("classgap.engine.run.Position", Watched)
        with pytest.raises(TrainingInterrupted):
            yield
    assert done == steps
