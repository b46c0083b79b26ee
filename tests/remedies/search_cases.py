"""Small searches: digits with a tiny network, in a worker process that all tests share."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from classgap.engine.executors import Workers
from classgap.remedies.adjustments import Context
from classgap.remedies.search import SearchConfig, SearchProgress, SearchResult, TrialRecord, search
from classgap.remedies.selection import Limits

SMALL: dict[str, Any] = {
    "data": "digits:fraction=0.3",
    "model": "mlp:width=16",
    "epochs": 3,
    "batch_size": 32,
    "n_trials": 4,
    "cross_validate": False,
}
CONTEXT = Context(10)
LIMITS = Limits(0.02, 0.02)


def config(out: Path, **settings: Any) -> SearchConfig:
    return SearchConfig(out=out, **(SMALL | settings))


def run_search(out: Path, workers: Workers | None, on_progress: Any = None, **settings: Any) -> SearchResult:
    return search(config(out, **settings), CONTEXT, LIMITS, on_progress, workers)


def outcomes(result: SearchResult) -> list[TrialRecord]:
    """Trials without the places and times of their runs."""
    return [replace(each, run=Path(each.run.name), seconds=0.0) for each in result.trials]


class Recorder:
    """Collect the progress, and act when a trial starts."""

    def __init__(self, action: Any = None, *, at: int = -1) -> None:
        self.seen: list[SearchProgress] = []
        self._action, self._at = action, at

    def __call__(self, progress: SearchProgress) -> None:
        self.seen.append(progress)
        if self._action is not None and progress.trial.status == "running" and progress.trial.number == self._at:
            self._action()

    @property
    def events(self) -> list[tuple[int, str]]:
        return [(each.trial.number, each.trial.status) for each in self.seen]


def write_features(path: Path, *, test_seed: int = 0, n_classes: int = 6) -> Path:
    """Write clouds of points that overlap, with test labels that ``test_seed`` shuffles if it is not 0."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(n_classes, 5))
    arrays = {}
    for split, count in (("train", 240), ("test", 240)):
        targets = np.arange(count) % n_classes
        arrays[f"{split}_features"] = (centers[targets] + rng.normal(size=(count, 5))).astype(np.float32)
        arrays[f"{split}_targets"] = targets
    if test_seed:
        arrays["test_targets"] = np.random.default_rng(test_seed).permutation(arrays["test_targets"])
    np.savez(path, **arrays)
    return path


if __name__ == "__main__":  # a search in a process of its own, for tests that kill it
    run_search(
        Path(sys.argv[1]),
        None,
        lambda progress: print(progress.trial.number, progress.trial.status, flush=True),
        n_trials=int(sys.argv[2]),
        epochs=int(sys.argv[3]),
    )
