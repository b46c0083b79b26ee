"""``search``: train trials in parallel until the time or the number of trials is used up."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import astuple, replace
from typing import Any

from classgap.engine import RunDirectory, TrainingInterrupted
from classgap.engine.executors import Workers, open_executor
from classgap.engine.signals import StopRequest
from classgap.engine.task_pool import Ended, TaskPool
from classgap.engine.train import load_dataset
from classgap.models.catalog import MODELS
from classgap.remedies.adjustments import Context
from classgap.remedies.search.budget import format_seconds
from classgap.remedies.search.config import SearchConfig
from classgap.remedies.search.directory import SearchDirectory
from classgap.remedies.search.finalists import (
    MAX_SHARE,
    affordable,
    fold_count,
    needed_seconds,
    plan,
    train_finalists,
)
from classgap.remedies.search.objective import Judge
from classgap.remedies.search.optional import require_optuna
from classgap.remedies.search.records import (
    OnProgress,
    SearchProgress,
    SearchResult,
    TrialRecord,
    best_by_method,
    excess_of,
)
from classgap.remedies.search.space import Space
from classgap.remedies.search.study import Asked, TrialStudy
from classgap.remedies.search.trial import TrialOutcome, TrialTask, run_trial
from classgap.remedies.selection import Limits

SAVE_SECONDS = 2.0
METRICS = {"hard": "val_hard", "worst": "val_worst", "balanced": "val_balanced", "cost": "val_balanced"}


def search(
    config: SearchConfig,
    context: Context,
    limits: Limits | None,
    on_progress: OnProgress | None = None,
    workers: Workers | None = None,
    progress: Callable[[str], None] = lambda message: None,
) -> SearchResult:
    """Search training settings that improve the goal on validation samples; continue an earlier search.

    The first trial is the baseline: cross-entropy with default settings. At last, the baseline and the best trials are
    cross-validated, if ``config`` says so and the budget allows it. No test sample is used.

    Args:
        config: Settings.
        context: Goal, priors and costs.
        limits: Losses of the easy third and overall that a trial may cost; ``None`` if the goal is the cost.
        on_progress: Called when a trial starts or ends.
        workers: Any executor, instead of the one that ``config`` names; it stays open.
        progress: Called with a line of text before each run of the cross-validation.

    Raises:
        ValueError: If a setting is invalid, or the baseline failed or did not finish in time.
        TrainingInterrupted: If a signal stopped the search; all trials were saved.
    """
    require_optuna()
    if config.model is not None:
        MODELS.check(config.model)  # here, as a worker would name it only after the directory is written
    directory = SearchDirectory(config.directory)
    space = Space.from_data(config, load_dataset(config.data))
    executor = open_executor(config.executor) if workers is None else nullcontext(workers)
    session = directory.open(_stored(config, context, limits))
    with executor as opened, session, StopRequest() as stop:  # a cluster that is away writes nothing
        running = _Search(config, context, limits, directory, space, opened, on_progress)
        running.run(stop)
        return running.cross_validate(running.result(), stop, progress)


class _Search:
    """State of a running search."""

    def __init__(
        self,
        config: SearchConfig,
        context: Context,
        limits: Limits | None,
        directory: SearchDirectory,
        space: Space,
        workers: Workers,
        on_progress: OnProgress | None,
    ) -> None:
        self.config, self.context, self.limits = config, context, limits
        self.directory, self.space, self.workers = directory, space, workers
        self.on_progress = on_progress
        self.study = TrialStudy(directory, space, config.seed)
        self.judge: Judge | None = None
        self.baseline_seconds: float | None = None
        self.pool = TaskPool[Asked, TrialOutcome](workers)
        self.held: list[tuple[Asked, TrialOutcome]] = []  # finished before the baseline, which judges them
        self.stopping = False
        self._began, self._spent = time.monotonic(), directory.seconds
        self._saved = self._began
        if any(each.number == 0 and each.status == "complete" for each in self._records()):
            self._make_judge()

    def run(self, stop: StopRequest) -> None:
        """Run trials until a limit is reached.

        Raises:
            TrainingInterrupted: If a signal was received.
        """
        while True:
            while self._may_start():
                self._start(self.study.ask())
            if not self.pool:
                break
            if not self.stopping and (stop.name or self._trial_seconds_left() == 0):
                self.stopping = True
                self.directory.end_session()
            done = self.pool.wait()
            self._save_time(force=bool(done))
            for each in done:
                self._handle(each)
        self._check_stopped(stop)

    def cross_validate(self, result: SearchResult, stop: StopRequest, progress: Callable[[str], None]) -> SearchResult:
        """Train the baseline and the best trials on other folds and on all samples, as far as the budget allows.

        Raises:
            TrainingInterrupted: If a signal was received.
        """
        n_folds = fold_count(self.config)
        if n_folds < 2:
            return result
        seconds = result.baseline.seconds
        best = list(best_by_method(result).values())[: affordable(self.config, seconds, self.workers.count())]
        planned = plan(self.directory, [result.baseline, *best], n_folds) if best else []
        self.directory.begin_session()

        def is_over() -> bool:
            self._save_time(force=False)
            return bool(stop.name) or self._seconds_left() == 0

        done, failures = train_finalists(
            planned, self.config, self.space, self.directory, self.workers, is_over, progress
        )
        self._check_stopped(stop)
        result = replace(result, seconds=self.directory.seconds, failures=failures)
        if len(done) < 2 or done[0] is not planned[0]:
            if self.config.seconds is None or failures:  # without failures and a limit, no trial finished
                return result
            needed = needed_seconds(self.config, seconds, 1, self.workers.count()) / MAX_SHARE
            return replace(result, seconds_short=needed)
        return replace(result, finalists=tuple(done))

    def _check_stopped(self, stop: StopRequest) -> None:
        if stop.name:
            raise TrainingInterrupted(
                f"stopped by {stop.name}; {len(self._records())} trials are saved in {self.directory.path}. Run the "
                "same command to continue.",
                stop.name,
            )

    def result(self) -> SearchResult:
        """Return all trials.

        Raises:
            ValueError: If the baseline did not finish.
        """
        records = self._records()
        if self.judge is None:
            epochs = len(RunDirectory(self.directory.run(0)).read_metrics())
            raise ValueError(
                f"budget {self.config.budget} ended after {epochs} epochs of the baseline: raise it, or set fewer "
                "epochs. With a larger budget the same command continues."
            )
        return SearchResult(self.directory.path, self.context.goal, tuple(records), self.directory.seconds)

    def _may_start(self) -> bool:
        if self.stopping or self._trial_seconds_left() == 0 or not self.pool.has_room:
            return False
        limit = self.config.n_trials
        return self.study.has_waiting or limit is None or self.study.count < limit

    def _start(self, asked: Asked) -> None:
        config = self.config.train_config(self.directory.run(asked.number), **self.space.settings(asked.params))
        task = TrialTask(
            settings=config.to_dict(),
            metric=METRICS[self.context.goal],
            history=self.study.history() if self.config.prune else (),
            session=self.directory.session,
            token=self.directory.token,
            attempts=self.directory.attempts / f"{asked.number:03d}",
        )
        self.pool.start(asked, run_trial, task)
        self._show(asked.number)

    def _handle(self, ended: Ended[Asked, TrialOutcome]) -> None:
        """Record the outcome of a trial; a trial whose worker died is tried once more."""
        if ended.outcome is not None:
            self._record(ended.key, ended.outcome)
        elif self.stopping:
            return  # it stays in the journal as running, and the next search resumes it
        elif ended.again:
            self._start(ended.key)
        else:
            self._record(ended.key, TrialOutcome("failed", error=ended.error))

    def _record(self, asked: Asked, outcome: TrialOutcome) -> None:
        if outcome.status == "stopped":
            return
        if asked.number == 0 and outcome.status != "finished":
            self.study.drop(asked, outcome)
            self.directory.end_session()
            raise ValueError(f"the baseline, cross-entropy with default settings, failed: {outcome.error}")
        if outcome.status == "finished":
            if asked.number == 0:
                self._make_judge()
            if self.judge is None:
                self.held.append((asked, outcome))
                return
            estimate = self.judge.measure(self.directory.run(asked.number))
            found = {
                "estimate": {name: astuple(each) for name, each in estimate.items()},
                "excess": excess_of(estimate, self.limits),
            }
            self.study.complete(asked, outcome, estimate[self.context.goal].change, found)
        else:
            self.study.drop(asked, outcome)
        self._show(asked.number)
        if asked.number == 0:
            held, self.held = self.held, []
            for each in held:
                self._record(*each)

    def _make_judge(self) -> None:
        self.judge = Judge.from_run(self.directory.run(0), self.context, self.config.seed)
        lines = RunDirectory(self.directory.run(0)).read_metrics()
        self.baseline_seconds = sum(line["timing"]["seconds"] for line in lines if "timing" in line)

    def _records(self) -> list[TrialRecord]:
        """Return the last record of each trial that was started."""
        found = {
            each.user_attrs["number"]: TrialRecord.from_trial(each, self.directory)
            for each in self.study.study.trials
            if "number" in each.user_attrs and each.params
        }
        return [found[number] for number in sorted(found)]

    def _show(self, number: int) -> None:
        if self.on_progress is None:
            return
        records = self._records()
        shown = next(each for each in records if each.number == number)
        best = None if self.judge is None else SearchResult(self.directory.path, self.context.goal, tuple(records), 0)
        self.on_progress(
            SearchProgress(
                shown,
                None if best is None or not best.ranked() else best.best,
                self.context.goal,
                self.config.n_trials,
                self._seconds_left(),
            )
        )

    def _seconds_left(self) -> float | None:
        limit = self.config.seconds
        self.directory.seconds = self._spent + time.monotonic() - self._began
        return None if limit is None else max(0.0, limit - self.directory.seconds)

    def _trial_seconds_left(self) -> float | None:
        """Return the time left for trials; the cross-validation needs the rest."""
        left = self._seconds_left()
        if left is None or self.baseline_seconds is None:
            return left
        count = affordable(self.config, self.baseline_seconds, self.workers.count())
        reserved = needed_seconds(self.config, self.baseline_seconds, count, self.workers.count()) if count else 0.0
        return max(0.0, left - reserved)

    def _save_time(self, *, force: bool) -> None:
        now = time.monotonic()
        if not self.stopping and (force or now - self._saved >= SAVE_SECONDS):
            self._saved = now
            self.directory.save_session()


def describe_time(result: SearchResult) -> str:
    """Describe the number of trials and the time spent.

    >>> from pathlib import Path
    >>> describe_time(SearchResult(Path("runs"), "hard", (), 5400))
    'searched 0 trials in 1h30m'
    """
    counts: dict[str, int] = {}
    for each in result.trials:
        counts[each.status] = counts.get(each.status, 0) + 1
    states = ", ".join(f"{count} {'unfinished' if name == 'running' else name}" for name, count in counts.items())
    return f"searched {len(result.trials)} trials in {format_seconds(result.seconds)}{f': {states}' if states else ''}"


def _stored(config: SearchConfig, context: Context, limits: Limits | None) -> dict[str, Any]:
    return config.stored() | {
        "goal": context.goal,
        "limits": None if limits is None else list(astuple(limits)),
        "priors": None if context.priors_K is None else context.priors_K.tolist(),
        "costs": None if context.costs_KK is None else context.costs_KK.tolist(),
    }
