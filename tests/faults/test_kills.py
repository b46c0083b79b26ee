"""Runs that are killed at random moments end bit for bit as runs that are not, in every stage of every method."""

import itertools
import json
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from classgap._text_checksums import CHECKSUMS, check_text
from classgap.data import load
from classgap.engine import Run, TrainConfig, train
from classgap.engine.defaults import resolve_config
from classgap.methods import METHODS

STAGED = ("jtt", "drop", "supcon", "dro-lt", "crt", "lws")
# Two networks, losses that change during training or have a memory, and combinations.
OTHERS = ("lff", "ldam-drw", "hybrid", "sam+mr2", "mr2+crt", "mr2+tau-norm")
SETTINGS: dict[str, Any] = {
    "data": "digits:fraction=0.3",
    "model": "resnet20:width=2",
    "epochs": 3,
    "batch_size": 64,
    "save_every": 0.05,
    "val_fraction": 0.2,
    "monitor": "balanced",
    "audit": False,
}


def finish(config: TrainConfig) -> None:
    train(config, quiet=True)
    os._exit(0)  # the copy of the test process must not run its exit handlers


def kill_until_finished(config: TrainConfig, delays: Iterator[float]) -> int:
    """Train in processes that are killed after these delays, and a last one that is not; return the number of kills."""
    kills = 0
    for delay in delays:
        child = multiprocessing.get_context("fork").Process(target=finish, args=(config,))
        child.start()
        child.join(delay)
        if child.is_alive():
            os.kill(child.pid, signal.SIGKILL)
            kills += 1
        child.join()
        assert child.exitcode in (0, -signal.SIGKILL)
        if child.exitcode == 0:
            return kills
    train(config, quiet=True)
    return kills


def results(run: Path) -> dict[str, Any]:
    """Return everything that a run computed, without times, and which files have checksums."""
    checksums = json.loads((run / CHECKSUMS).read_text())
    for name in checksums:
        check_text(run / name)
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    found: dict[str, Any] = {"metrics": [{k: v for k, v in line.items() if k != "timing"} for line in lines]}
    found["checksums"] = sorted(checksums)
    files = ("predictions.safetensors", "val_predictions.safetensors", "checkpoints/model.safetensors")
    return found | {name: (run / name).read_bytes() for name in files}


def test_every_method_with_stages_is_listed() -> None:
    data = load("two-moons:n_train=64:n_test=64")
    found = set()
    for name in METHODS.names():
        config = TrainConfig(data=data.name, model="mlp:width=4", method=name, epochs=2, val_fraction=0.2)
        run = Run(resolve_config(config, data), data, torch.device("cpu"))
        if len(run.method.stages()) > 1:
            found.add(name)
    assert found == set(STAGED)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("method", STAGED + OTHERS)
def test_killed_runs_end_as_others(method: str, seed: int, tmp_path: Path) -> None:
    started = time.monotonic()
    train(TrainConfig(**SETTINGS, method=method, out=tmp_path / "whole"), quiet=True)
    seconds = time.monotonic() - started
    rng = np.random.default_rng((seed, *method.encode()))
    kills, attempt = 0, 0
    while not kills:  # the machine may be faster now, and the run finished before it was killed
        attempt += 1
        config = TrainConfig(**SETTINGS, method=method, out=tmp_path / f"killed {attempt}")
        kills = kill_until_finished(config, iter(rng.uniform(0, seconds / attempt, 6)))
    assert results(tmp_path / f"killed {attempt}") == results(tmp_path / "whole")


def finish_unless_killed(config: TrainConfig, last: int, replace: Callable[..., None]) -> None:
    """Train, but kill the process before it replaces a file more than ``last`` times."""
    writes = 0

    def count(source: Any, target: Any) -> None:
        nonlocal writes
        writes += 1
        if writes > last:
            os.kill(os.getpid(), signal.SIGKILL)
        replace(source, target)

    os.replace = count  # type: ignore[assignment]  # in this process, which ends
    finish(config)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["erm", "crt"])
def test_runs_killed_before_any_file_is_replaced_end_as_others(method: str, tmp_path: Path) -> None:
    """Each process replaces one file more than the one before it could: the moments between two writes of a pair."""
    settings = SETTINGS | {"save_every": 0.3, "epochs": 2, "class_stats": True, "method": method}
    train(TrainConfig(**settings, out=tmp_path / "whole"), quiet=True)
    expected = results(tmp_path / "whole")
    for last in itertools.count():
        config = TrainConfig(**settings, out=tmp_path / str(last))
        child = multiprocessing.get_context("fork").Process(
            target=finish_unless_killed, args=(config, last, os.replace)
        )
        child.start()
        child.join()
        assert child.exitcode in (0, -signal.SIGKILL)
        train(config, quiet=True)
        assert results(tmp_path / str(last)) == expected, last
        if child.exitcode == 0:
            break
    assert last > 10
