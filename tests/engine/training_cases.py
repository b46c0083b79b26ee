"""Small trainings that take a second, in this process or as a command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

from classgap.data import load
from classgap.engine import Run, RunDirectory, TrainConfig
from classgap.engine.defaults import complete
from classgap.engine.train import train

SMALL: dict[str, Any] = {"data": "digits", "model": "mlp:width=16", "epochs": 3, "batch_size": 64, "lr": 0.05}


def config(**settings: Any) -> TrainConfig:
    return TrainConfig(**(SMALL | settings))


def new_run(**settings: Any) -> Run:
    """A run that is ready for its first step."""
    wanted = config(**settings)
    data = load(wanted.data)
    run = Run(complete(wanted, data), data, torch.device("cpu"))
    run.begin_stage()
    run.model.train()
    return run


def trained(out: Path, **settings: Any) -> RunDirectory:
    """A finished run."""
    return RunDirectory(train(config(out=out, **settings), quiet=True).directory)


def metrics(directory: RunDirectory | Path) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl without wall-clock figures."""
    path = directory if isinstance(directory, Path) else directory.path
    lines = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "timing"} for line in lines]


def command(out: Path, *flags: str, processes: int = 1, **settings: Any) -> list[str]:
    """The command line of a small training."""
    words = ["-m", "classgap", "train", "--out", str(out)]
    for name, value in (SMALL | settings).items():
        words += [f"--{name.replace('_', '-')}", str(value)]
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
    """Exit code, output and errors."""
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out, err


def succeed(process: subprocess.Popen[str]) -> str:
    """The output of a process that ends well; a failure shows all that it said."""
    code, out, err = finish(process)
    assert code == 0, f"exit code {code}\n{out}\n{err}"
    return out
