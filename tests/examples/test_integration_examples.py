"""The examples of the integrations run, and leave an audit behind."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

import classgap as cg

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("task", ["text", "image"])
def test_hugging_face(task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    load("huggingface_trainer").main(["--task", task, "--epochs", "1", "--out", str(tmp_path)])
    audit = cg.Audit.load(tmp_path / "eval" / "audit.json")
    assert audit.class_names == ("plain", "mixed", "noisy")
    assert audit.overall.accuracy > 0.4  # chance is 0.33
    assert "noisy" in capsys.readouterr().out


def test_lightning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    load("lightning_module").main(["--epochs", "2", "--out", str(tmp_path)])
    for stage in ("val", "test"):
        audit = cg.Audit.load(tmp_path / stage / "audit.json")
        assert audit.class_names == ("near", "middle", "far")
        assert audit.overall.accuracy > 0.5  # chance is 0.33
    assert "near" in capsys.readouterr().out
