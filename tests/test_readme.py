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
    gains = [
        float(gain) for gain in re.findall(r"^\| \*\*classgap fix\*\* \| \+([\d.]+)", remedies, flags=re.MULTILINE)
    ]
    small, large = ([gain for gain in gains if (gain > 10) == tail] for tail in (False, True))
    assert len(small) >= 8
    claim = f"gains {min(small)} to {max(small)} on balanced problems and {round(min(large))} on long-tailed ones"
    assert claim in " ".join(README.read_text().split())


def test_commands_are_targets_of_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (README.parent / "Makefile").read_text(), flags=re.MULTILINE))
    commands = set(re.findall(r"^make ([a-z-]+)", README.read_text(), flags=re.MULTILINE))
    assert {"demo", "test"} <= commands <= targets
