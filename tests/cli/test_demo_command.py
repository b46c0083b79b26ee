from pathlib import Path

import pytest

from classgap.cli import main


def test_demo_compares_resumes_and_starts_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, flags = tmp_path / "demo", ["--seeds", "1", "--out", str(tmp_path / "demo")]
    assert main(["demo", "--epochs", "1", *flags]) == 0
    text = capsys.readouterr().out
    assert text.count(": hard third ") == 2  # MR² and the control
    assert "1 seed per method, 10,000 test samples" in text
    assert "--method feature-norm" in text
    assert (out / "report.html").exists()
    metrics = out / "mr2-seed0" / "metrics.jsonl"
    before = metrics.stat().st_mtime_ns
    assert main(["demo", "--epochs", "1", *flags]) == 0
    assert metrics.stat().st_mtime_ns == before
    assert main(["demo", "--epochs", "2", *flags]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert main(["demo", "--epochs", "2", *flags, "--overwrite"]) == 0
    assert len(metrics.read_text().splitlines()) == 3  # two epochs and the test


def test_seeds_must_be_positive(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--seeds", "0"]) == 2
    assert "--seeds must be at least 1, got 0" in capsys.readouterr().err
