"""The scikit-learn example runs, and the chosen loss helps the hard classes."""

import re

import pytest

from scripts import load_script


def test_the_hard_third_gains(capsys: pytest.CaptureFixture[str]) -> None:
    load_script("examples/sklearn_grid_search.py").main(["--methods", "erm", "logit-adjustment", "--alphas", "10"])
    printed = capsys.readouterr().out
    before, after = map(float, re.findall(r"hard third ([\d.]+)", printed))
    assert "logit-adjustment" in printed
    assert after > before + 0.05
