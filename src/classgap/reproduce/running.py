"""Run the cells of a plan that the store does not have yet, in parallel."""

from __future__ import annotations

import json
import secrets
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from classgap._atomic_write import atomic_write_text
from classgap.engine import TrainingInterrupted
from classgap.engine.executors import Workers, check_executor, open_executor
from classgap.engine.signals import StopRequest
from classgap.engine.task_pool import Ended, TaskPool
from classgap.reproduce.cells import EXTRAS, Cell, Plan
from classgap.reproduce.store import ResultStore
from classgap.reproduce.task import Outcome, Task, run_task


@dataclass(frozen=True)
class Progress:
    """Progress of the runs of a plan.

    Attributes:
        done: Finished runs, including stored ones.
        total: All runs.
        seconds_left: Estimated time left; ``None`` before the first run has finished.
        cell: Cell of the run that ended last; ``None`` at the beginning.
        seed: Its seed.
        outcome: Its outcome.
    """

    done: int
    total: int
    seconds_left: float | None
    cell: Cell | None = None
    seed: int = 0
    outcome: Outcome | None = None


OnProgress = Callable[[Progress], None]


def run_plan(
    plan: Plan,
    store: ResultStore,
    *,
    executor: str = "process:1",
    files: Mapping[str, str] | None = None,
    keep_runs: bool = False,
    on_progress: OnProgress | None = None,
    workers: Workers | None = None,
) -> dict[Cell, str]:
    """Train the cells of a plan that the store does not have, and store their results.

    Start it again after an interruption: finished runs are read from the store, others continue from their
    checkpoints.

    Args:
        plan: What to run.
        store: Where results are.
        executor: "process:N" (N processes on this machine) or "dask:ADDRESS" (a Dask cluster whose workers share the
            file system of the store).
        files: Paths of the files that recipes name.
        keep_runs: Keep the run directories, with predictions and weights.
        on_progress: Called at the beginning, and when a run ends.
        workers: Any executor, instead of the one that ``executor`` names; it stays open.

    Returns:
        The reason for each cell that could not be run.

    Raises:
        ValueError: If the executor is invalid or cannot be used.
        TrainingInterrupted: If a signal stopped the runs; they were saved.
    """
    check_executor(executor)
    # All cells of a seed before the next seed: differences from the baseline appear early.
    wanted: dict[str, list[tuple[Cell, int]]] = {}
    counts = plan.seeds_by_cell
    for seed in range(plan.seeds):
        for cell in plan.cells:
            if seed < counts[cell]:
                wanted.setdefault(cell.key(seed), []).append((cell, seed))
    missing = []
    for key, same in wanted.items():
        stored = store.get(key)
        if not all(cell.is_stored(seed, stored) for cell, seed in same):
            cell, seed = same[0]
            for other, _ in same[1:]:
                cell = cell.with_extras(dict(other.settings))
            # Keep what the stored run has in addition; maps add up in the store.
            kept = {name: True for name, field in EXTRAS.items() if name != "map" and field in (stored or {})}
            missing.append((cell.with_extras(kept), seed))
    running = _Runs(store, files or {}, keep_runs, len(wanted), len(wanted) - len(missing), on_progress)
    running.show()
    if missing:
        with open_executor(executor) if workers is None else nullcontext(workers) as opened, StopRequest() as stop:
            running.run(missing, opened, stop)
        store.rebuild_index()
    reasons = {cell.key(0): reason for cell, reason in running.impossible.items()}
    return {cell: reasons[cell.key(0)] for cell in plan.cells if cell.key(0) in reasons}


class _Runs:
    """State of some runs."""

    def __init__(
        self,
        store: ResultStore,
        files: Mapping[str, str],
        keep_runs: bool,
        total: int,
        done: int,
        on_progress: OnProgress | None,
    ) -> None:
        self.store, self.files, self.keep_runs = store, files, keep_runs
        self.total, self.done, self.on_progress = total, done, on_progress
        self.impossible: dict[Cell, str] = {}
        self._stored = done
        self._token = secrets.token_hex(8)
        self._session = store.path / ".work" / f"session-{self._token}.json"
        self._began = time.monotonic()

    def run(self, missing: Sequence[tuple[Cell, int]], workers: Workers, stop: StopRequest) -> None:
        """Run until all have ended or a signal arrives.

        Raises:
            TrainingInterrupted: If a signal was received.
        """
        rest = list(reversed(missing))
        pool = TaskPool[tuple[Cell, int], Outcome](workers)
        self._write_session(self._token)
        try:
            while rest or pool:
                while rest and not stop.name and pool.has_room:
                    cell, seed = rest.pop()
                    if cell in self.impossible:
                        self.total -= 1
                    else:
                        self._start(pool, cell, seed)
                if stop.name:
                    rest.clear()
                    self._write_session("")
                for ended in pool.wait():
                    if ended.again:
                        rest.append(ended.key)
                    else:
                        self._end(ended)
        finally:
            self._session.unlink(missing_ok=True)
        if stop.name:
            raise TrainingInterrupted(
                f"stopped by {stop.name}; {self.done} of {self.total} runs are in {self.store.path}. Run the same "
                "command to continue.",
                stop.name,
            )

    def show(self, cell: Cell | None = None, seed: int = 0, outcome: Outcome | None = None) -> None:
        """Report the progress."""
        if self.on_progress is not None:
            new = self.done - self._stored
            left = (time.monotonic() - self._began) / new * (self.total - self.done) if new else None
            first = cell.first_seed if cell is not None else 0
            self.on_progress(Progress(self.done, self.total, left, cell, first + seed, outcome))

    def _start(self, pool: TaskPool[tuple[Cell, int], Outcome], cell: Cell, seed: int) -> None:
        key = cell.key(seed)
        try:
            config = cell.config(seed, self.files, out=self.store.work(cell.work_name(seed)), audit=False)
        except ValueError as error:
            self._give_up(cell, seed, Outcome(key, "impossible", error=str(error)))
            return
        extras = cell.to_dict()
        maps = tuple(str(extras["map"]).split(",")) if "map" in extras else ()
        task = Task(key, config.to_dict(), self._session, self._token, maps, bool(extras.get("corruptions")))
        pool.start((cell, seed), run_task, task)

    def _end(self, ended: Ended[tuple[Cell, int], Outcome]) -> None:
        """Store the outcome of a run."""
        cell, seed = ended.key
        key, outcome = cell.key(seed), ended.outcome
        if outcome is None:
            self._give_up(cell, seed, Outcome(key, "failed", error=ended.error))
            return
        stored = self.store.get(key) if outcome.status in ("failed", "impossible") else None
        if stored is not None and cell.is_stored(seed, stored):  # another command has finished it and removed its files
            self.done += 1
            self.show(cell, seed, Outcome(key, "finished", stored))
        elif outcome.status == "finished":
            self.store.add(
                {"key": key, "seed": cell.first_seed + seed, "settings": cell.training_settings(), **outcome.found}
            )
            if not self.keep_runs:
                shutil.rmtree(self.store.work(cell.work_name(seed)), ignore_errors=True)
            self.done += 1
            self.show(cell, seed, outcome)
        elif outcome.status == "diverged":  # a result like others: accuracy is that of guessing, or undefined
            failed = {**outcome.found, "metrics": {}, "classes": {}, "epochs": {}, "diverged": outcome.error}
            self.store.add({"key": key, "seed": cell.first_seed + seed, "settings": cell.training_settings(), **failed})
            self.done += 1
            self.show(cell, seed, outcome)
        elif outcome.status != "stopped":
            self._give_up(cell, seed, outcome)

    def _give_up(self, cell: Cell, seed: int, outcome: Outcome) -> None:
        self.impossible.setdefault(cell, outcome.error)
        self.total -= 1
        self.show(cell, seed, outcome)

    def _write_session(self, token: str) -> None:
        """Write the file that workers watch: they stop when it no longer has their token."""
        self._session.parent.mkdir(parents=True, exist_ok=True)
        atomic_write_text(self._session, json.dumps({"token": token}) + "\n")
