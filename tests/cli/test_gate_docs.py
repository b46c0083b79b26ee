"""The commands of docs/gate.md and of the workflow in examples/gate work, in the order in which a reader meets them."""

import os
import re
import runpy
import shlex
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from classgap.audit import GateRules
from classgap.cli import main

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "gate"
PAGE = (ROOT / "docs" / "gate.md").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for file in EXAMPLE.iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(line: str, monkeypatch: pytest.MonkeyPatch) -> int:
    program, *words = shlex.split(os.path.expandvars(line))
    if program == "python":
        monkeypatch.setattr(sys, "argv", words)
        runpy.run_path(words[0], run_name="__main__")
        return 0
    assert program == "classgap"
    return main(words)


def test_the_page_works_from_top_to_bottom(folder: Path, monkeypatch, capsys):
    commands = 0
    for kind, block in re.findall(r"```(python|console)\n(.*?)```", PAGE, flags=re.DOTALL):
        if kind == "python":
            exec(block, {})
            continue
        for line in block.splitlines():
            assert run(line, monkeypatch) == 0, line
            assert capsys.readouterr().err == ""
            commands += 1
    assert commands >= 8
    assert {"baseline.json", "gate.json", "gate.xml", "summary.md", "history.html"} <= {
        path.name for path in folder.iterdir()
    }


def test_the_workflow_passes_the_same_model_and_fails_a_worse_one(folder: Path, monkeypatch, capsys):
    workflow = yaml.safe_load((folder / "workflow.yml").read_text())
    steps = workflow["jobs"]["gate"]["steps"]
    lines = [step["run"] for step in steps if "run" in step and not step["run"].startswith("pip")]
    assert len(lines) == 3
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder / "step.md"))
    run(lines[0], monkeypatch)
    assert main(["audit", "predictions.npz", "--json", "baseline.json"]) == 0
    assert [run(line, monkeypatch) for line in lines] == [0, 0, 0]
    assert "Passed" in (folder / "step.md").read_text(encoding="utf-8")
    run("python predict.py --train-size 60", monkeypatch)
    assert [run(line, monkeypatch) for line in lines[1:]] == [1, 0]
    assert "Failed" in (folder / "step.md").read_text(encoding="utf-8")
    written = next(step["with"]["path"].split() for step in steps if "upload-artifact" in step.get("uses", ""))
    assert all((folder / name).is_file() for name in written)


def test_the_rules_of_the_page_are_those_of_the_example():
    shown = re.search(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)[1]
    rules = GateRules.load(EXAMPLE / "gate.yaml")
    assert GateRules(**yaml.safe_load(shown)) == rules


def test_baseline_size_is_as_documented(tmp_path: Path):
    rng = np.random.default_rng(0)
    targets = rng.permutation(np.repeat(np.arange(10), 1000))
    predictions = np.where(rng.random(10_000) < 0.95, targets, rng.integers(0, 10, 10_000))
    np.savez(tmp_path / "p.npz", targets=targets, predictions=predictions, index=np.arange(10_000))
    assert main(["audit", str(tmp_path / "p.npz"), "--json", str(tmp_path / "b.json")]) == 0
    stated = re.search(r"(\d+) kB for the CIFAR-10 test set", PAGE)
    assert (tmp_path / "b.json").stat().st_size == pytest.approx(1000 * int(stated[1]), rel=0.5)
