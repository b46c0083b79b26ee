"""One trial, in a worker: train in its run directory, stop when it lags behind or the search ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from classgap.engine import NonFiniteLossError, RunDirectory, TrainConfig, TrainingInterrupted
from classgap.engine.config import parse_settings
from classgap.engine.task_pool import MAX_ATTEMPTS, died_message
from classgap.engine.workers import SessionStop, train_in_worker
from classgap.remedies.search.pruning import Pruner

Status = Literal["finished", "pruned", "stopped", "failed", "diverged"]


@dataclass(frozen=True)
class TrialTask:
    """Plain values that describe a trial to a worker.

    Attributes:
        settings: Settings of the run.
        metric: Name of the validation metric that pruning watches.
        history: Its values per epoch in the finished trials; empty if trials are not pruned.
        session: File with the token of the running search.
        token: The token of the search that started the trial.
        attempts: File with a line per attempt.
    """

    settings: Mapping[str, Any]
    metric: str
    history: tuple[tuple[float, ...], ...]
    session: Path
    token: str
    attempts: Path


@dataclass(frozen=True)
class TrialOutcome:
    """Plain values that a worker returns.

    Attributes:
        status: "finished", "pruned", "stopped" (by the end of the search), "diverged" or "failed".
        values: The watched metric per epoch.
        seconds: Training time.
        error: Reason for a failure.
    """

    status: Status
    values: tuple[float, ...] = ()
    seconds: float = 0.0
    error: str = ""


def run_trial(task: TrialTask) -> TrialOutcome:
    """Train a trial, or resume it from its run directory."""
    if _count_attempt(task) > MAX_ATTEMPTS:
        return TrialOutcome("failed", error=died_message(MAX_ATTEMPTS))
    config = TrainConfig(**parse_settings(task.settings))
    assert config.out is not None
    directory = RunDirectory(config.out)
    stop = TrialStop(task, directory)
    status: Status = "finished"
    error = ""
    try:
        train_in_worker(config, task.token, stop)
    except TrainingInterrupted:
        status = "pruned" if stop.pruned else "stopped"
    except NonFiniteLossError as failure:
        status, error = "diverged", str(failure)
    except Exception as failure:
        status, error = "failed", f"{type(failure).__name__}: {failure}"
    lines = directory.read_metrics()
    seconds = sum(line["timing"]["seconds"] for line in lines if "timing" in line)
    return TrialOutcome(status, watched_values(lines, task.metric), seconds, error)


def watched_values(lines: Sequence[Mapping[str, Any]], metric: str) -> tuple[float, ...]:
    """Return a metric per epoch."""
    return tuple(line[metric] for line in lines if metric in line)


class TrialStop(SessionStop):
    """Stop a trial when the search ends, or when its validation accuracy is below the median of the others.

    Args:
        task: The trial.
        directory: Its run directory.

    Attributes:
        pruned: Whether the trial lags behind.
    """

    def __init__(self, task: TrialTask, directory: RunDirectory) -> None:
        super().__init__(task.session, task.token, "the search")
        self.pruned = False
        self._directory, self._metric = directory, task.metric
        self._pruner = Pruner(task.history) if task.history else None
        self._size, self._epochs = -1, 0

    def poll(self) -> None:
        """Look for completed epochs and for the end of the search."""
        if self._pruner is not None and self._lags(self._pruner):
            self.pruned, self.name = True, "the pruner"
        super().poll()

    def _lags(self, pruner: Pruner) -> bool:
        """Return whether to prune, at the end of each epoch: then a resumed trial is pruned at the same one."""
        try:
            size = self._directory.metrics.stat().st_size
        except FileNotFoundError:
            return False
        if size == self._size:
            return False
        self._size = size
        values = watched_values(self._directory.read_metrics(), self._metric)
        new, self._epochs = values[self._epochs :], len(values)
        return any(pruner.add(value) for value in new)


def _count_attempt(task: TrialTask) -> int:
    """Record an attempt and return the number of attempts in this search; a cluster restarts tasks on its own."""
    with task.attempts.open("a", encoding="utf-8") as file:
        file.write(task.token + "\n")
    return task.attempts.read_text(encoding="utf-8").split().count(task.token)
