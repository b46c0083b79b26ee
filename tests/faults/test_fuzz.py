"""Damaged files of every format end in success or one line that names the file, within bounds of time and memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is bounded by RLIMIT_AS")


def violations(directory: Path, seed: int, count: int) -> list[str]:
    """Replay ``inputs/`` and fuzz in another process, which a fault of a library may end."""
    command = [sys.executable, str(Path(__file__).with_name("fuzz.py")), str(directory), str(seed), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    lines = [": ".join(map(str, each.values())) for each in found]
    if done.returncode:
        lines.append(f"exit code {done.returncode} in {(directory / 'case').read_text()}: {done.stderr[-2000:]}")
    return lines


def test_damaged_files_are_reported(tmp_path):
    assert violations(tmp_path, seed=0, count=350) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 9))
def test_many_damaged_files_are_reported(tmp_path, seed):
    assert violations(tmp_path, seed, count=2000) == []
