"""An interrupted run resumes to the same result as an uninterrupted one."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from training_cases import command, environment, finish, metrics, new_run, start, succeed, trained, trained_by_two

from classgap.cli import main
from classgap.engine.storage.checkpoint import load_weights
from classgap.testing import Processes

LONGER = {"epochs": 12, "method": "mr2", "save_every": 0.05, "val_fraction": 0.1, "monitor": "accuracy"}


def wait_for_lines(path: Path, count: int, process) -> None:
    """Wait until this many epochs were written."""
    deadline = time.monotonic() + 600  # machines may be busy; a process that ended is noticed at once
    while time.monotonic() < deadline and process.poll() is None:
        if path.exists() and path.read_text().count("\n") >= count:
            return
        time.sleep(0.01)
    raise AssertionError(f"{path} did not grow: {process.communicate()}")


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return trained(tmp_path_factory.mktemp("uninterrupted") / "run", **LONGER).path


def assert_same(one: Path, other: Path) -> None:
    assert metrics(one) == metrics(other)
    weights = [load_weights(path / "checkpoints" / "model.safetensors") for path in (one, other)]
    assert all(torch.equal(tensor, weights[1][name]) for name, tensor in weights[0].items())


def test_killed_runs_resume_bit_for_bit(
    tmp_path: Path, uninterrupted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    process = start(out, **LONGER)
    wait_for_lines(out / "metrics.jsonl", 5, process)
    process.kill()
    assert finish(process)[0] == -signal.SIGKILL
    again = command(out, **LONGER)[3:]  # in this process, without python -m classgap
    assert main(again) == 0
    assert_same(out, uninterrupted)
    capsys.readouterr()
    assert main(again) == 0
    assert "is finished" in capsys.readouterr().out


def test_sigterm_saves_and_resumes(tmp_path: Path, uninterrupted: Path) -> None:
    out = tmp_path / "run"
    rarely = LONGER | {"save_every": 1000.0}
    process = start(out, **rarely)
    wait_for_lines(out / "metrics.jsonl", 4, process)
    process.terminate()
    code, _, err = finish(process)
    assert code == 143  # so that `train && deploy` stops
    assert "stopped by SIGTERM" in err
    assert "same command to resume" in err
    environment_file = out / "env.json"
    first = json.loads(environment_file.read_text())
    environment_file.write_text(json.dumps(first | {"python": "3.0"}))
    succeed(start(out, **rarely))
    assert json.loads(environment_file.read_text()) == first  # of the command that resumed
    assert_same(out, uninterrupted)


def test_ctrl_c_ends_a_shell_loop_over_seeds(tmp_path: Path) -> None:
    once = shlex.join(command(tmp_path / "SEED", **LONGER)).replace("SEED", "$seed")
    shell = subprocess.Popen(
        ["bash", "-c", f"for seed in 0 1; do {once}; done"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        start_new_session=True,
        # A test suite in the background may ignore SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    wait_for_lines(tmp_path / "0" / "metrics.jsonl", 2, shell)
    os.killpg(shell.pid, signal.SIGINT)  # as a terminal does
    code, _, err = finish(shell)
    assert code == -signal.SIGINT
    assert "stopped by SIGINT" in err
    assert "same command to resume" in err
    assert not (tmp_path / "1").exists()


def test_output_before_an_interruption_is_flushed() -> None:
    script = "from classgap.__main__ import exit_process; print('kept'); exit_process(130)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)  # a pipe is block-buffered
    assert (done.returncode, done.stdout) == (-signal.SIGINT, "kept\n")


def test_an_unwritable_directory_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(command(tmp_path / "file" / "run")[3:]) == 2
    err = capsys.readouterr().err
    assert "cannot write to the run directory" in err
    assert err.count("\n") == 1


def test_two_processes_match_one_process(tmp_path: Path) -> None:
    settings = {"epochs": 4, "method": "mr2", "val_fraction": 0.1}
    succeed(start(tmp_path / "two", processes=2, audit=True, **settings))
    assert (tmp_path / "two" / "report.html").exists()
    alone = metrics(trained(tmp_path / "one", **settings))
    together = metrics(tmp_path / "two")
    assert len(alone) == len(together) == 5
    for one, two in zip(alone, together, strict=True):
        assert one.keys() == two.keys()
        numbers = {key: value for key, value in one.items() if isinstance(value, float)}
        assert {key: two[key] for key in numbers} == pytest.approx(numbers, rel=1e-3, abs=2e-3)


def test_two_processes_predict_with_the_saved_weights(tmp_path: Path, processes: Processes) -> None:
    settings = {"model": "resnet20:width=4", "epochs": 1, "batch_size": 100}
    directory = trained_by_two(processes, tmp_path / "run", audit=False, **settings)
    run = new_run(**settings)
    run.model.load_state_dict(load_weights(directory.model))
    stored = load_weights(directory.predictions)["logits"]
    torch.testing.assert_close(stored, run.scores(run.data.test).logits_NK, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "settings",
    [
        {"method": "mr2", "model": "resnet20:width=4", "batch_size": 200, "ema_decay": 0.9},
        pytest.param({"method": "mr2"}, marks=pytest.mark.slow),
        pytest.param({"model": "resnet20:width=4", "batch_size": 200, "swa_start": 0.2}, marks=pytest.mark.slow),
    ],
)
def test_two_killed_processes_resume_bit_for_bit(settings: dict, tmp_path: Path, processes: Processes) -> None:
    settings = {"epochs": 8, "save_every": 0.05, **settings}
    out = tmp_path / "run"
    process = start(out, processes=2, **settings)
    wait_for_lines(out / "metrics.jsonl", 3, process)
    for child in children(process.pid):
        os.kill(child, signal.SIGKILL)
    process.kill()
    finish(process)
    resumed, other = (trained_by_two(processes, path, **settings) for path in (out, tmp_path / "other"))
    assert metrics(resumed) == metrics(other)


@pytest.mark.slow
def test_a_process_whose_peer_is_lost_says_so_in_one_line(tmp_path: Path) -> None:
    out = tmp_path / "run"
    process = start(out, processes=2, epochs=2000, save_every=0.05)
    wait_for_lines(out / "metrics.jsonl", 2, process)
    os.kill(children(process.pid)[-1], signal.SIGKILL)
    code, _, errors = finish(process)
    assert code != 0
    assert errors.count("classgap: another process of this run ended") == 1
    assert "gloo" not in errors.lower()


def children(parent: int) -> list[int]:
    """Return the child processes."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[1]) == parent:
                found.append(int(entry.name))
    return found


@pytest.fixture
def report_orderly_exit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make each Python process print a line when it exits in order."""
    (tmp_path / "sitecustomize.py").write_text("import atexit\natexit.register(print, 'orderly exit')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)


@pytest.mark.slow
@pytest.mark.usefixtures("report_orderly_exit")
def test_two_processes_skip_interpreter_shutdown(tmp_path: Path) -> None:
    """It can crash while threads of gloo are running."""
    assert "orderly exit" in succeed(start(tmp_path / "alone"))
    out_text = succeed(start(tmp_path / "together", processes=2))
    assert "Wrote" in out_text
    assert out_text.count("orderly exit") == 1  # from torchrun itself


@pytest.mark.usefixtures("report_orderly_exit")
@pytest.mark.parametrize(("started_by", "orderly"), [({}, True), ({"TORCHELASTIC_RUN_ID": "none"}, False)])
def test_the_script_skips_interpreter_shutdown_under_torchrun(started_by: dict[str, str], orderly: bool) -> None:
    command = [Path(sys.executable).with_name("classgap"), "adit"]
    done = subprocess.run(command, env=os.environ | started_by, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "did you mean audit?" in done.stderr
    assert ("orderly exit" in done.stdout) == orderly
