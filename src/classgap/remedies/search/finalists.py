"""Cross-validation of the best trials, so that all training samples choose, and networks trained on all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from classgap.data.splits import count_folds
from classgap.engine import RunDirectory, TrainConfig
from classgap.engine.executors import Workers
from classgap.engine.task_pool import TaskPool
from classgap.remedies.search.config import SearchConfig
from classgap.remedies.search.directory import SearchDirectory
from classgap.remedies.search.records import Finalist, TrialRecord
from classgap.remedies.search.space import Space
from classgap.remedies.search.trial import TrialOutcome, TrialTask, run_trial

MAX_FOLDS = 5
MAX_FINALISTS = 2  # besides the baseline
MAX_SHARE = 0.75  # of the budget
SLOWER = 1.25  # a run on all samples, and the start of each run, take longer than a trial


def fold_count(config: SearchConfig) -> int:
    """Return the number of folds; 1 if the trials hold out too much for a second one."""
    return min(MAX_FOLDS, count_folds(config.val_fraction)) if config.cross_validate else 1


def needed_seconds(config: SearchConfig, trial_seconds: float, n_finalists: int, n_workers: int) -> float:
    """Return the time that the cross-validation of the baseline and some finalists takes.

    The first fold is the trial itself; the run on all samples is one more.

    >>> needed_seconds(SearchConfig(data="digits", n_trials=2), 10, 1, 1)
    125.0
    """
    return SLOWER * trial_seconds * fold_count(config) * (1 + n_finalists) / max(1, n_workers)


def affordable(config: SearchConfig, trial_seconds: float, n_workers: int) -> int:
    """Return the number of finalists that leave enough of the budget to the trials.

    >>> [affordable(SearchConfig(data="digits", budget=each), 10, 1) for each in ("1h", "3m", "1m")]
    [2, 1, 0]
    """
    if fold_count(config) < 2:
        return 0
    if config.seconds is None:
        return MAX_FINALISTS
    limit = MAX_SHARE * config.seconds
    fitting = [n for n in range(1, MAX_FINALISTS + 1) if needed_seconds(config, trial_seconds, n, n_workers) <= limit]
    return max(fitting, default=0)


def plan(directory: SearchDirectory, records: Sequence[TrialRecord], n_folds: int) -> list[Finalist]:
    """Return the runs of each trial; the first is the baseline."""
    return [
        Finalist(
            each,
            (each.run, *(directory.path / "folds" / f"{each.number:03d}-{fold}" for fold in range(1, n_folds))),
            directory.path / "refits" / f"{each.number:03d}",
        )
        for each in records
    ]


def train_finalists(
    finalists: Sequence[Finalist],
    config: SearchConfig,
    space: Space,
    directory: SearchDirectory,
    workers: Workers,
    is_over: Callable[[], bool],
    progress: Callable[[str], None],
) -> tuple[list[Finalist], dict[int, str]]:
    """Train the runs that are missing, finalist by finalist; a run whose worker died is tried once more.

    Args:
        finalists: The baseline, and the best trials.
        config: Settings of the search.
        space: Converts parameters to settings.
        directory: The directory of the search, in a session.
        workers: Where the runs are trained.
        is_over: Whether to stop; all runs are saved then.
        progress: Called with a line of text.

    Returns:
        The finalists whose runs are all finished, and number of a trial → reason why a run of it failed. The other
        runs of a trial that failed are not started, nor any run after the baseline failed.
    """
    waiting = [each for finalist in finalists for each in _missing_runs(finalist, config, space)]
    total, done = len(waiting), 0
    pool = TaskPool[_MissingRun, TrialOutcome](workers)
    failures: dict[int, str] = {}
    while waiting or pool:
        while waiting and pool.has_room and not is_over():
            run = waiting.pop(0)
            progress(f"cross-validating the best trials: run {done + len(pool) + 1} of {total}")
            pool.start(run, run_trial, _task(run.config, directory))
        if is_over():
            waiting = []
            directory.end_session()
        for ended in pool.wait():
            if ended.again and not is_over():
                waiting.insert(0, ended.key)
                continue
            done += 1
            error = ended.error if ended.outcome is None else ended.outcome.error
            if error and not is_over():
                failures.setdefault(ended.key.number, f"{_relative(ended.key.config, directory)}: {error}")
        waiting = [each for each in waiting if failures.keys().isdisjoint({0, each.number})]
    complete = [each for each in finalists if all(RunDirectory(run).finished() for run in (*each.folds, each.refit))]
    return complete, failures


@dataclass(frozen=True, eq=False)  # hashable, unlike its settings
class _MissingRun:
    number: int  # of the trial
    config: TrainConfig


def _missing_runs(finalist: Finalist, config: SearchConfig, space: Space) -> Iterator[_MissingRun]:
    settings = space.settings(finalist.record.params)
    wanted = [
        replace(config.train_config(out, **settings), val_fold=fold) for fold, out in enumerate(finalist.folds) if fold
    ]
    wanted.append(replace(config.train_config(finalist.refit, **settings), val_fraction=0.0))
    for each in wanted:
        assert each.out is not None
        if not RunDirectory(each.out).finished():
            yield _MissingRun(finalist.record.number, each)


def _relative(config: TrainConfig, directory: SearchDirectory) -> str:
    assert config.out is not None
    return config.out.relative_to(directory.path).as_posix()


def _task(config: TrainConfig, directory: SearchDirectory) -> TrialTask:
    assert config.out is not None
    path: Path = config.out
    attempts = directory.attempts / f"{path.parent.name}-{path.name}"
    return TrialTask(config.to_dict(), "", (), directory.session, directory.token, attempts)
