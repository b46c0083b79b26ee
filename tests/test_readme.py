"""Every Python block of the README runs, in order, in one session; so do its commands."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from classgap.cli import main

README = Path(__file__).parents[1] / "README.md"


def _blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)


def test_python_blocks_run() -> None:
    blocks = _blocks()
    assert blocks
    namespace: dict = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), namespace)


def test_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    for name in ("val", "test", "before", "after"):
        targets = np.arange(600) % 6
        bias = 0.0 if name == "after" else np.array([0, 0, 0, 0, -1.5, -1.5])
        signal = np.diag([6.0, 6, 6, 6, 3, 3])[targets]
        np.savez(tmp_path / name, targets=targets, logits=signal + bias + rng.normal(size=(600, 6)))
    for number in range(8):
        path = tmp_path / "photos" / ("cat", "dog")[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (40, 40), color=(30 * number, 0, 0)).save(path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLASSGAP_CACHE", str(tmp_path / "cache"))
    assert main(["audit", "before.npz", "--json", "before.json"]) == 0
    (block,) = re.findall(r"```\n(classgap .*?)```", README.read_text(), flags=re.DOTALL)
    lines = block.splitlines()
    assert [line.split()[1] for line in lines] == ["audit", "fix", "compare", "gate", "train"]
    for line in lines:
        words = shlex.split(line, comments=True)[1:]
        assert main([*words, *(["--dry-run"] if words[0] == "train" else [])]) == 0, line
    assert {"report.html", "fixed", "diff.html"} <= {path.name for path in tmp_path.iterdir()}


def test_gains_of_fix_are_those_of_the_measurements() -> None:
    remedies = (README.parent / "docs" / "remedies.md").read_text()
    rows = re.findall(r"^\| \*\*classgap fix\*\* \| \+([\d.]+) (\(.*?\))", remedies, flags=re.MULTILINE)
    shown = {float(gain): f"{gain} {interval}" for gain, interval in rows}
    small, large = ([gain for gain in shown if (gain > 10) == tail] for tail in (False, True))
    assert len(rows) >= 10
    text = " ".join(README.read_text().split())
    assert f"gains {shown[min(small)]} to {shown[max(small)]} points on balanced problems" in text
    assert f"it gains {shown[min(large)]} to {shown[max(large)]} points" in text


def test_it_is_short() -> None:
    lines = README.read_text().splitlines()
    assert len(lines) <= 80
    assert max(len(line) for line in lines if not line.startswith(("|", "["))) <= 160  # but tables and the picture
