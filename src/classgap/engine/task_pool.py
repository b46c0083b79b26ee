"""Tasks on workers that may die: a task whose worker died may be started once more."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Generic, TypeVar

from classgap.engine.executors import Workers

Key = TypeVar("Key", bound=Hashable)
Outcome = TypeVar("Outcome")
Task = TypeVar("Task")

MAX_ATTEMPTS = 2
WAIT_SECONDS = 0.2


@dataclass(frozen=True)
class Ended(Generic[Key, Outcome]):
    """A task that has ended.

    Attributes:
        key: Its key.
        outcome: What its function returned; ``None`` if it returned nothing because its worker died.
        error: Why it returned nothing.
        again: Whether it may be started again: its worker died, and it was started fewer than ``MAX_ATTEMPTS`` times.
    """

    key: Key
    outcome: Outcome | None = None
    error: str = ""
    again: bool = False


class TaskPool(Generic[Key, Outcome]):
    """Run tasks on workers, and count how often each was started.

    Functions report their own failures in what they return; an exception means that the worker died, or that its
    cluster gave up.

    Args:
        workers: Where tasks run.
    """

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._running: dict[Future[Outcome], Key] = {}
        self._attempts: dict[Key, int] = {}

    def __len__(self) -> int:
        """Return the number of tasks that run, or wait for a worker."""
        return len(self._running)

    @property
    def has_room(self) -> bool:
        """Whether a worker is idle."""
        return len(self) < self._workers.count()

    def start(self, key: Key, function: Callable[[Task], Outcome], task: Task) -> None:
        """Run a function on a worker.

        Args:
            key: Names the task; a task that is started again has the same key.
            function: A function of a module, which workers can import.
            task: Its argument.
        """
        self._attempts[key] = self._attempts.get(key, 0) + 1
        self._running[self._workers.executor.submit(function, task)] = key

    def wait(self) -> list[Ended[Key, Outcome]]:
        """Return the tasks that have ended, after waiting a moment for the first; there may be none."""
        done, _ = wait(self._running, timeout=WAIT_SECONDS, return_when=FIRST_COMPLETED)
        return [self._end(self._running.pop(future), future) for future in done]

    def _end(self, key: Key, future: Future[Outcome]) -> Ended[Key, Outcome]:
        error = RuntimeError("the cluster canceled it") if future.cancelled() else future.exception()
        if error is None:
            return Ended(key, future.result())
        return Ended(key, error=_explain(error), again=self._attempts[key] < MAX_ATTEMPTS)


def died_message(times: int) -> str:
    """Explain that a worker died."""
    return f"its worker process died {times} times, perhaps because memory ran out; try a smaller model or batch size"


def _explain(error: BaseException) -> str:
    killed = isinstance(error, BrokenProcessPool) or type(error).__name__ == "KilledWorker"
    return died_message(MAX_ATTEMPTS) if killed else f"{type(error).__name__}: {error}"
