"""Train, test and audit a classifier: from settings to a run directory."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from classgap.data import load
from classgap.data.dataset import Dataset
from classgap.distributed import broadcast_object, destroy, init_from_env, is_lost_connection, rank
from classgap.engine.checks import training_warnings
from classgap.engine.config import TrainConfig
from classgap.engine.defaults import default_directory, resolve_config
from classgap.engine.logging.tensorboard import require_tensorboard
from classgap.engine.run import Run
from classgap.engine.signals import StopRequest
from classgap.engine.storage.artifacts import write_artifacts
from classgap.engine.storage.environment import describe_environment
from classgap.engine.storage.fingerprint import fingerprint
from classgap.engine.storage.run_directory import RunDirectory
from classgap.engine.trainer import Trainer


@dataclass(frozen=True)
class TrainResult:
    """Result of :func:`train`.

    Attributes:
        run_dir: Directory of the run.
        was_finished: Whether the run was already finished, so that nothing was trained.
        is_main_process: Whether this is global rank 0.

    >>> result = TrainResult(Path("runs/digits-mr2-seed0"), was_finished=False, is_main_process=True)
    >>> print(RunDirectory(result.run_dir).report.as_posix())
    runs/digits-mr2-seed0/report.html
    """

    run_dir: Path
    was_finished: bool
    is_main_process: bool


def train(
    config: TrainConfig,
    *,
    data: Dataset | None = None,
    overwrite: bool = False,
    quiet: bool = False,
    stop: StopRequest | None = None,
) -> TrainResult:
    """Train, test and audit a classifier; resume an interrupted run, and leave a finished one unchanged.

    Args:
        config: Settings; ``None`` values select defaults for the data.
        data: The dataset that ``config.data`` names, if it is already loaded.
        overwrite: Remove an existing run and start over.
        quiet: Show neither progress nor warnings.
        stop: Reasons to stop; by default SIGTERM and Ctrl-C.

    Raises:
        ValueError: If a setting or the data are invalid; nothing has been written then.
        NonFiniteLossError: If the loss became NaN or infinite.
        TrainingInterrupted: If a signal stopped the run; it was saved.
        ConnectionError: If another process of the run ended.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     out = Path(folder) / "run"
    ...     config = TrainConfig(data="two-moons:n_train=64:n_test=64", epochs=1, out=out, audit=False)
    ...     first, second = train(config, quiet=True), train(config, quiet=True)
    ...     "test_accuracy" in RunDirectory(first.run_dir).read_metrics()[-1], second.was_finished
    (True, True)
    """
    device = choose_device(config.device)
    launched = init_from_env(device)
    directory = RunDirectory(config.out or default_directory(config))
    try:
        finished = not overwrite and _is_finished(directory, config)
        if not finished:
            if config.tensorboard:
                require_tensorboard()
            data = data or load_dataset(config.data)
            stored = {} if overwrite else broadcast_object(directory.stored_settings() if rank() == 0 else None)
            try:
                run = Run(resolve_config(config, data, stored), data, device)  # rejects invalid settings
            except ValueError as error:
                raise ValueError(f"{directory.config}: {error}" if stored else str(error)) from None
            environment = describe_environment(device)
            _on_main(lambda: directory.begin(run.config, environment, overwrite=overwrite, data=fingerprint(run.data)))
            _print_warnings([*data.notes, *training_warnings(run)], quiet=quiet)
            trainer = Trainer(run, directory, quiet=quiet)
            with stop or StopRequest() as request:
                trainer.fit(request)
                write_artifacts(run, directory, trainer.best)  # takes no stop requests: it is almost done
        return TrainResult(directory.path, finished, rank() == 0)
    except RuntimeError as error:
        if not is_lost_connection(error):
            raise
        raise ConnectionError(
            "another process of this run ended; see its messages, and run the same command to resume."
        ) from error
    finally:
        directory.close()
        if launched:
            destroy()


def choose_device(name: str) -> torch.device:
    """Return the device that ``--device`` names; under torchrun each process gets its own GPU.

    Raises:
        ValueError: If the device does not exist.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(f"device must be auto, cpu, cuda or cuda:N; got {name!r}.") from None
    if device.type == "cuda":
        if not torch.cuda.is_available():
            raise ValueError(f"device {name} is not available: torch finds no GPU; use cpu or auto.")
        if ":" not in name:
            device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
        return device
    try:
        torch.ones(1, device=device).item()  # "meta" can hold no values, and not every build has "mps"
    except (RuntimeError, AssertionError, ImportError):
        raise ValueError(f"device {name} is not available; use cpu or auto.") from None
    return device


def load_dataset(text: str) -> Dataset:
    """Load a dataset on every process; process 0 first, which decodes and caches it for the others."""
    loaded: list[Dataset] = []
    _on_main(lambda: loaded.append(load(text)))
    return loaded[0] if loaded else load(text)


def _is_finished(directory: RunDirectory, config: TrainConfig) -> bool:
    """Return whether the directory contains this run, complete.

    Raises:
        ValueError: If it contains another run.
    """
    finished = False

    def check() -> None:
        nonlocal finished
        if directory.config.exists():
            directory.check_same(config)
            finished = directory.finished()

    _on_main(check)
    return bool(broadcast_object(finished))


def _print_warnings(warnings: list[str], *, quiet: bool) -> None:
    if rank() == 0 and not quiet:
        for warning in warnings:
            print(f"classgap: {warning}", file=sys.stderr)


def _on_main(action: Callable[[], None]) -> None:
    """Run an action on process 0; its ValueError is raised on all processes."""
    error: ValueError | None = None
    if rank() == 0:
        try:
            action()
        except ValueError as raised:
            error = raised
    problem = broadcast_object(None if error is None else str(error))
    if problem is not None:
        raise error or ValueError(problem)
