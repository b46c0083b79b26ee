"""A whole training: from settings to a run directory with a report."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from classgap.data import load
from classgap.data.dataset import Dataset
from classgap.distributed import broadcast_object, destroy, init_from_env, rank
from classgap.engine.config import TrainConfig
from classgap.engine.config_file import checked_settings
from classgap.engine.defaults import complete, default_directory
from classgap.engine.fit import Fit
from classgap.engine.logging.tensorboard import require_tensorboard
from classgap.engine.run import Run
from classgap.engine.signals import StopRequest
from classgap.engine.storage.artifacts import write_outcome
from classgap.engine.storage.environment import environment
from classgap.engine.storage.run_directory import RunDirectory


@dataclass(frozen=True)
class Trained:
    """Where a run is, whether it had been finished before, and whether this is the process that tells of it.

    >>> done = Trained(Path("runs/digits-mr2-seed0"), already=False, first=True)  # as train(…) gives it
    >>> print(RunDirectory(done.directory).report.as_posix())
    runs/digits-mr2-seed0/report.html
    """

    directory: Path
    already: bool
    first: bool


def train(config: TrainConfig, *, data: Dataset | None = None, overwrite: bool = False, quiet: bool = False) -> Trained:
    """Train, test and audit; go on if the directory holds the beginning of this run; do nothing if it is finished.

    Args:
        config: what to do.
        data: what ``config.data`` names, if it is loaded already.
        overwrite: start over, whatever is in the directory.
        quiet: show no progress.

    Raises:
        ValueError: if a setting or the data is at fault.
        NonFiniteLossError: if the loss became NaN or infinite.
        TrainingInterrupted: if a signal asked for it; the run is saved.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     config = TrainConfig(data="two-moons:train=64:test=64", epochs=1, out=Path(folder) / "run", report=False)
    ...     done, again = train(config, quiet=True), train(config, quiet=True)
    ...     "test_accuracy" in RunDirectory(done.directory).read_metrics()[-1], again.already
    (True, True)
    """
    device = choose_device(config.device)
    launched = init_from_env(device)
    config = replace(config, out=config.out or default_directory(config))
    assert config.out is not None
    directory = RunDirectory(config.out)
    try:
        finished = not overwrite and _is_finished(directory, config)
        if not finished:
            config = config if overwrite else _filled(directory, config)
            if config.tensorboard:
                require_tensorboard()
            data = data or load_together(config.data)
            run = Run(complete(config, data), data, device)  # refuses what cannot be before anything is written
            _on_first(lambda: directory.begin(run.config, environment(device), overwrite=overwrite))
            _tell([*data.remarks, *run.remarks()], quiet=quiet)
            fit = Fit(run, directory, quiet=quiet)
            with StopRequest() as stop:
                fit(stop)
                write_outcome(run, directory, fit.best)  # not stopped any more: a minute later there is a report
        return Trained(directory.path, finished, rank() == 0)
    finally:
        directory.close()
        if launched:
            destroy()


def choose_device(name: str) -> torch.device:
    """The device that ``--device`` names; each process that torchrun started on a machine gets a GPU of its own.

    Raises:
        ValueError: if there is no such device.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(f"device must be auto, cpu, cuda or cuda:N; got {name!r}.") from None
    if device.type == "cuda":
        if not torch.cuda.is_available():
            raise ValueError(f"device {name} was asked for, but torch sees no GPU here; use cpu or auto.")
        if ":" not in name:
            device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
    return device


def load_together(text: str) -> Dataset:
    """The data set on every process; the first one decodes and stores it, the others find it stored."""
    found: list[Dataset] = []
    _on_first(lambda: found.append(load(text)))
    return found[0] if found else load(text)


def _is_finished(directory: RunDirectory, config: TrainConfig) -> bool:
    """Whether the directory holds this very run, and all of it.

    Raises:
        ValueError: if it holds another one.
    """
    finished = False

    def look() -> None:
        nonlocal finished
        if directory.config.exists():
            directory.check_same(config)
            finished = directory.finished()

    _on_first(look)
    return bool(broadcast_object(finished))


def _filled(directory: RunDirectory, config: TrainConfig) -> TrainConfig:
    """The settings, with gaps filled as they were when the run was begun."""
    stored = broadcast_object(RunDirectory(directory.path).stored_settings() if rank() == 0 else None)
    gaps = {name: value for name, value in checked_settings(stored).items() if getattr(config, name) is None}
    return replace(config, **gaps)


def _tell(remarks: list[str], *, quiet: bool) -> None:
    if rank() == 0 and not quiet:
        for remark in remarks:
            print(f"classgap: {remark}", file=sys.stderr)


def _on_first(action: Callable[[], None]) -> None:
    """Do something on process 0; if it is refused there, it is refused everywhere."""
    problem = None
    if rank() == 0:
        try:
            action()
        except ValueError as error:
            problem = str(error)
    problem = broadcast_object(problem)
    if problem is not None:
        raise ValueError(problem)
