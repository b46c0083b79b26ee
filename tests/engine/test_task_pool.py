"""Tasks whose worker dies: they may be started once more, and then they have failed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest

from classgap.engine.executors import ProcessExecutor, Workers
from classgap.engine.task_pool import Ended, TaskPool


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    with ProcessExecutor(1) as executor:
        yield Workers(executor, lambda: 1)


def die_once(path: Path) -> str:
    """Die, unless the file exists."""
    if not path.exists():
        path.touch()
        os._exit(1)
    return path.name


def wait_for_one(pool: TaskPool[str, Any]) -> Ended[str, Any]:
    while not (ended := pool.wait()):
        pass
    return ended[0]


def run(pool: TaskPool[str, Any], key: str, function: Callable[[Any], Any], task: Any) -> list[Ended[str, Any]]:
    """Start a task for as long as the pool allows it."""
    ended: list[Ended[str, Any]] = []
    while not ended or ended[-1].again:
        pool.start(key, function, task)
        assert (len(pool), pool.has_room) == (1, False)
        ended.append(wait_for_one(pool))
        assert (len(pool), pool.has_room) == (0, True)
    return ended


def test_a_task_whose_process_died_may_be_started_again(tmp_path: Path, workers: Workers) -> None:
    first, second = run(TaskPool(workers), "once", die_once, tmp_path / "file")
    assert (first.key, first.outcome, first.again) == ("once", None, True)
    assert second == Ended("once", "file")


def test_a_task_whose_process_died_twice_failed(workers: Workers) -> None:
    pool: TaskPool[str, Any] = TaskPool(workers)
    ended = run(pool, "always", os._exit, 1)
    assert [each.again for each in ended] == [True, False]
    assert ended[-1].outcome is None
    assert "its worker process died 2 times" in ended[-1].error
    assert run(pool, "another", abs, -3) == [Ended("another", 3)]  # each task has its own attempts


class Canceling(Executor):
    """Cancel all tasks, as a cluster that shuts down."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.cancel()
        future.set_running_or_notify_cancel()
        return future


def test_a_canceled_task_is_named() -> None:
    ended = run(TaskPool(Workers(Canceling(), lambda: 1)), "canceled", abs, -3)
    assert [each.again for each in ended] == [True, False]
    assert ended[-1].error == "RuntimeError: the cluster canceled it"


def test_a_pool_without_tasks_returns_at_once(workers: Workers) -> None:
    assert TaskPool[str, int](workers).wait() == []
