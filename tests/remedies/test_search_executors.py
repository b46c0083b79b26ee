"""Trials in two processes and on a Dask cluster of two worker processes, and workers that die."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from search_cases import Recorder, outcomes, run_search

from classgap.engine import RunDirectory
from classgap.engine.executors import Workers, open_executor
from classgap.remedies.search import SearchResult
from classgap.remedies.search.trial import TrialTask, run_trial

SETTINGS = {"n_trials": 5, "prune": False}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2, processes=True, threads_per_worker=1, dashboard_address=None, silence_logs="CRITICAL"
    ) as started:
        yield started


def check_parallel(result: SearchResult, recorder: Recorder) -> None:
    assert [each.status for each in result.trials] == ["complete"] * 5
    assert all(RunDirectory(each.run).finished() for each in result.trials)
    assert recorder.events[:2] == [(0, "running"), (1, "running")]  # at the same time
    assert result.baseline.estimate["hard"].change == 0


def test_two_processes(tmp_path: Path) -> None:
    recorder = Recorder()
    check_parallel(run_search(tmp_path / "out", None, recorder, executor="process:2", **SETTINGS), recorder)


def test_dask_cluster(tmp_path: Path, cluster: Any) -> None:
    recorder = Recorder()
    result = run_search(tmp_path / "out", None, recorder, executor=f"dask:{cluster.scheduler_address}", **SETTINGS)
    check_parallel(result, recorder)


@pytest.mark.slow
def test_dask_gives_the_results_of_processes(tmp_path: Path, cluster: Any, workers: Workers) -> None:
    here = run_search(tmp_path / "here", workers, **SETTINGS)
    with open_executor(f"dask:{cluster.scheduler_address}") as dask:
        there = run_search(tmp_path / "there", Workers(dask.executor, lambda: 1), **SETTINGS)
    assert outcomes(there) == outcomes(here)


def test_a_trial_survives_the_death_of_its_dask_worker(tmp_path: Path, cluster: Any) -> None:
    """The scheduler gives the trial to another worker, which resumes it."""
    killed = []

    def kill_worker() -> None:
        from distributed import Client

        with Client(cluster.scheduler_address, set_as_default=False) as client:
            for _ in range(200):
                busy = [name for name, keys in client.processing().items() if keys]
                if busy and (tmp_path / "out" / "attempts" / "000").exists():  # the trial has begun
                    pids = client.run(os.getpid, workers=busy[:1])
                    killed.extend(pids.values())
                    os.kill(killed[0], signal.SIGKILL)
                    return
                time.sleep(0.05)

    recorder = Recorder(kill_worker, at=0)
    with open_executor(f"dask:{cluster.scheduler_address}") as dask:
        result = run_search(tmp_path / "out", Workers(dask.executor, lambda: 1), recorder, n_trials=2, epochs=30)
    assert len(killed) == 1
    assert [each.status for each in result.trials] == ["complete", "complete"]
    assert len((tmp_path / "out" / "attempts" / "000").read_text().split()) == 2


def test_a_task_that_a_cluster_restarts_again_and_again_failed(tmp_path: Path) -> None:
    task = TrialTask({}, "val_hard", (), tmp_path / "session.json", "token", tmp_path / "000")
    task.attempts.write_text("another\ntoken\ntoken\n")
    outcome = run_trial(task)
    assert outcome.status == "failed"
    assert "died 2 times" in outcome.error


def worker_pid(workers: Workers) -> int:
    return workers.executor.submit(os.getpid).result()


def test_a_trial_whose_process_died_is_tried_again(tmp_path: Path, workers: Workers) -> None:
    pids = [worker_pid(workers)]
    recorder = Recorder(lambda: os.kill(pids.pop(), signal.SIGKILL) if pids else None, at=1)
    result = run_search(tmp_path / "killed", workers, recorder, n_trials=3)
    assert outcomes(result) == outcomes(run_search(tmp_path / "plain", workers, n_trials=3))
    assert recorder.events.count((1, "running")) == 2
    assert not pids


def test_a_trial_whose_process_died_twice_failed(tmp_path: Path, workers: Workers) -> None:
    first = worker_pid(workers)
    pools = workers.executor._pools  # type: ignore[attr-defined]

    def kill() -> None:
        for _ in range(200):  # the process of the second attempt has to start first
            for pid in list(pools[0]._processes or ()):
                os.kill(pid, signal.SIGKILL)
                return
            time.sleep(0.05)

    recorder = Recorder(kill, at=1)
    result = run_search(tmp_path / "out", workers, recorder, n_trials=3)
    assert [each.status for each in result.trials] == ["complete", "failed", "complete"]
    assert "died 2 times" in result.trials[1].error
    assert worker_pid(workers) != first
