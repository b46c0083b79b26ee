"""The example of the samplers runs, and balanced classes help the rare ones."""

import re

import pytest

from scripts import load_script


def test_rare_classes_gain(capsys: pytest.CaptureFixture[str]) -> None:
    load_script("examples/class_samplers.py").main(["--steps", "150"])
    rows = re.findall(r"^(.+): accuracy .*rarest classes ([\d.]+)$", capsys.readouterr().out, flags=re.MULTILINE)
    rare = {name: float(value) for name, value in rows}
    assert list(rare) == ["every sample", "class-balanced", "error quotas", "class-aware"]
    assert all(rare[name] > rare["every sample"] + 0.05 for name in ("class-balanced", "error quotas", "class-aware"))
