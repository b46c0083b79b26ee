"""Whatever ends a run, the same command goes on to the same end."""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from training_cases import command, environment, finish, metrics, new_run, start, succeed, trained

from classgap.engine.storage.checkpoint import load_weights

LONGER = {"epochs": 12, "method": "mr2", "save_every": 0.05, "val_fraction": 0.1, "monitor": "accuracy"}


def wait_for_lines(path: Path, count: int, process) -> None:
    """Until so many epochs were written."""
    deadline = time.monotonic() + 60
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


def test_killed_twice(tmp_path: Path, uninterrupted: Path) -> None:
    out = tmp_path / "run"
    for lines in (2, 7):
        process = start(out, **LONGER)
        wait_for_lines(out / "metrics.jsonl", lines, process)
        process.kill()
        assert finish(process)[0] == -signal.SIGKILL
    succeed(start(out, **LONGER))
    assert_same(out, uninterrupted)
    assert "is finished" in succeed(start(out, **LONGER))


def test_asked_to_stop(tmp_path: Path, uninterrupted: Path) -> None:
    out = tmp_path / "run"
    rarely = LONGER | {"save_every": 1000.0}
    process = start(out, **rarely)
    wait_for_lines(out / "metrics.jsonl", 4, process)
    process.terminate()
    told = succeed(process)
    assert "stopped by SIGTERM" in told
    assert "goes on from here" in told
    succeed(start(out, **rarely))
    assert_same(out, uninterrupted)


def test_an_interrupted_loop_over_seeds_ends(tmp_path: Path) -> None:
    once = shlex.join(command(tmp_path / "SEED", **LONGER)).replace("SEED", "$seed")
    shell = subprocess.Popen(
        ["bash", "-c", f"for seed in 0 1; do {once}; done"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        start_new_session=True,
        # A suite that runs in the background may have been told to ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    wait_for_lines(tmp_path / "0" / "metrics.jsonl", 2, shell)
    os.killpg(shell.pid, signal.SIGINT)  # as a terminal does
    code, _, told = finish(shell)
    assert code == -signal.SIGINT
    assert "stopped by SIGINT" in told
    assert "goes on from here" in told
    assert not (tmp_path / "1").exists()


def test_what_was_printed_before_an_interruption_is_written() -> None:
    script = "from classgap.__main__ import end; print('kept'); end(130)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)  # to a pipe, so in blocks
    assert (done.returncode, done.stdout) == (-signal.SIGINT, "kept\n")


def test_a_directory_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, _, told = finish(start(tmp_path / "file" / "run"))
    assert code == 2
    assert "cannot be written to" in told
    assert told.count("\n") == 1


def test_two_processes_are_one_process_with_the_joined_batch(tmp_path: Path) -> None:
    settings = {"epochs": 4, "method": "mr2", "val_fraction": 0.1}
    succeed(start(tmp_path / "two", processes=2, **settings))
    alone = metrics(trained(tmp_path / "one", **settings))
    together = metrics(tmp_path / "two")
    assert len(alone) == len(together) == 5
    for one, two in zip(alone, together, strict=True):
        assert one.keys() == two.keys()
        numbers = {key: value for key, value in one.items() if isinstance(value, float)}
        assert {key: two[key] for key in numbers} == pytest.approx(numbers, rel=1e-3, abs=2e-3)


def test_two_processes_predict_with_the_weights_that_are_saved(tmp_path: Path) -> None:
    settings = {"model": "resnet20:width=4", "epochs": 1, "batch_size": 100}
    succeed(start(tmp_path / "run", processes=2, **settings))
    run = new_run(**settings)
    run.model.load_state_dict(load_weights(tmp_path / "run" / "checkpoints" / "model.safetensors"))
    stored = load_weights(tmp_path / "run" / "predictions.safetensors")["logits"]
    torch.testing.assert_close(stored, run.scores(run.data.test).logits_NK, rtol=1e-4, atol=1e-4)


def test_two_processes_killed_and_resumed(tmp_path: Path) -> None:
    settings = {"epochs": 8, "method": "mr2", "save_every": 0.05}
    out = tmp_path / "run"
    process = start(out, processes=2, **settings)
    wait_for_lines(out / "metrics.jsonl", 3, process)
    for child in children(process.pid):
        os.kill(child, signal.SIGKILL)
    process.kill()
    finish(process)
    succeed(start(out, processes=2, **settings))
    succeed(start(tmp_path / "other", processes=2, **settings))
    assert metrics(out) == metrics(tmp_path / "other")


def children(parent: int) -> list[int]:
    """The processes that a process started."""
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
def telling_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every Python that is started says whether it comes to an orderly end."""
    (tmp_path / "sitecustomize.py").write_text("import atexit\natexit.register(print, 'an orderly end')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


@pytest.mark.usefixtures("telling_its_end")
def test_two_processes_do_not_wait_for_python_to_take_itself_apart(tmp_path: Path) -> None:
    """With gloo's threads still at work, that can crash."""
    assert "an orderly end" in succeed(start(tmp_path / "alone"))
    told = succeed(start(tmp_path / "together", processes=2))
    assert "Wrote" in told
    assert told.count("an orderly end") == 1  # of torchrun itself


@pytest.mark.usefixtures("telling_its_end")
@pytest.mark.parametrize(("started_by", "orderly"), [({}, True), ({"TORCHELASTIC_RUN_ID": "none"}, False)])
def test_nor_does_the_script(started_by: dict[str, str], orderly: bool) -> None:
    command = [Path(sys.executable).with_name("classgap"), "adit"]
    done = subprocess.run(command, env=os.environ | started_by, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "did you mean audit?" in done.stderr
    assert ("an orderly end" in done.stdout) == orderly
