"""Interrupted searches continue, and end as uninterrupted ones do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from search_cases import Recorder, outcomes, run_search

from classgap.engine import RunDirectory, TrainingInterrupted
from classgap.engine.executors import Workers
from classgap.remedies.search import SearchResult
from classgap.remedies.search.directory import SearchDirectory

SETTINGS = {"n_trials": 6, "epochs": 24}  # long enough to be interrupted in the middle of a trial


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory, workers: Workers) -> SearchResult:
    return run_search(tmp_path_factory.mktemp("whole") / "out", workers, **SETTINGS)


@pytest.mark.parametrize("trial", [0, 2, 5])
def test_ctrl_c_saves_and_the_search_continues_to_the_same_result(
    tmp_path: Path, workers: Workers, uninterrupted: SearchResult, trial: int
) -> None:
    interrupt = Recorder(lambda: signal.raise_signal(signal.SIGINT), at=trial)
    with pytest.raises(TrainingInterrupted, match="SIGINT") as stopped:
        run_search(tmp_path / "out", workers, interrupt, **SETTINGS)
    assert stopped.value.signal == "SIGINT"
    assert interrupt.events[-1] == (trial, "running")
    assert not RunDirectory(tmp_path / "out" / "trials" / f"{trial:03d}").finished()
    resumed = Recorder()
    result = run_search(tmp_path / "out", workers, resumed, **SETTINGS)
    assert outcomes(result) == outcomes(uninterrupted)
    assert resumed.events[0] == (trial, "running")


def test_a_killed_search_continues_to_the_same_result(
    tmp_path: Path, workers: Workers, uninterrupted: SearchResult
) -> None:
    """Kill -9 in the middle of trials: no handler runs, the journal has a trial that is running."""
    out = tmp_path / "out"
    script = Path(__file__).with_name("search_cases.py")
    command = [sys.executable, str(script), str(out), "6", "24"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if line.split() == ["3", "running"]:
            break
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    journal = out / "journal.log"
    with journal.open("ab") as file:
        file.write(b'{"op_code": 5, "worker')  # as if it was killed in the middle of a write
    (out / "journal.log.lock").touch()
    resumed = Recorder()
    result = run_search(out, workers, resumed, **SETTINGS)
    assert outcomes(result) == outcomes(uninterrupted)
    assert resumed.events[0] == (3, "running")


def test_a_resumed_trial_continues_from_its_checkpoint(tmp_path: Path, workers: Workers) -> None:
    """A trial that its budget stopped keeps its epochs."""
    settings = {"n_trials": 2, "epochs": 100_000, "prune": False}
    with pytest.raises(ValueError, match="budget 2s"):
        run_search(tmp_path / "out", workers, budget="2s", **settings)
    run = RunDirectory(tmp_path / "out" / "trials" / "000")
    before = run.read_metrics()
    assert len(before) > 0
    with pytest.raises(ValueError, match="budget 3s"):
        run_search(tmp_path / "out", workers, budget="3s", **settings)
    assert run.read_metrics()[: len(before)] == before
    assert SearchDirectory(tmp_path / "out").session.exists()


def test_a_finished_search_trains_nothing(uninterrupted: SearchResult, workers: Workers) -> None:
    recorder = Recorder()
    again = run_search(uninterrupted.directory, workers, recorder, **SETTINGS)
    assert outcomes(again) == outcomes(uninterrupted)
    assert recorder.events == []


def test_more_trials_extend_a_search(uninterrupted: SearchResult, workers: Workers) -> None:
    recorder = Recorder()
    more = run_search(uninterrupted.directory, workers, recorder, **(SETTINGS | {"n_trials": 7}))
    assert outcomes(more)[:6] == outcomes(uninterrupted)
    assert recorder.events[0] == (6, "running")


def test_two_searches_do_not_share_a_directory(tmp_path: Path, workers: Workers) -> None:
    settings = {"n_trials": 2}

    def start_another() -> None:
        run_search(tmp_path / "out", workers, **settings)

    with pytest.raises(ValueError, match=r"another process is searching.*--study-dir"):
        run_search(tmp_path / "out", workers, Recorder(start_another, at=0), **settings)
