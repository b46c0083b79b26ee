"""The scikit-learn example runs, and the chosen loss helps the hard classes."""

import importlib.util
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "examples" / "sklearn_grid_search.py"


def test_the_hard_third_gains(capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location("sklearn_grid_search", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main(["--methods", "erm", "logit-adjustment", "--alphas", "10"])
    printed = capsys.readouterr().out
    before, after = map(float, re.findall(r"hard third ([\d.]+)", printed))
    assert "logit-adjustment" in printed
    assert after > before + 0.05
