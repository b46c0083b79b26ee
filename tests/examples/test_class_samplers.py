"""The example of the samplers runs, and balanced classes help the rare ones."""

import importlib.util
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "examples" / "class_samplers.py"


def test_rare_classes_gain(capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location("class_samplers", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main(["--steps", "150"])
    rows = re.findall(r"^(.+): accuracy .*rarest classes ([\d.]+)$", capsys.readouterr().out, flags=re.MULTILINE)
    rare = {name: float(value) for name, value in rows}
    assert list(rare) == ["every sample", "class-balanced", "error quotas", "class-aware"]
    assert all(rare[name] > rare["every sample"] + 0.05 for name in ("class-balanced", "error quotas", "class-aware"))
