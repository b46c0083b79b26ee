from pathlib import Path

import pytest

from classgap import load_fix
from classgap.cli import main


def test_demo_trains_fixes_and_resumes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("classgap.cli.demo_command.DATA", "mnist1d:n_train=400:n_test=600")  # generating all takes long
    for limit in ("MIN_STEPS", "MAX_STEPS"):  # what refitted heads learn does not matter here
        monkeypatch.setattr(f"classgap.remedies.heads.{limit}", 10)
    out, flags = tmp_path / "demo", ["--seeds", "2", "--out", str(tmp_path / "demo")]
    assert main(["demo", "--epochs", "4", *flags]) == 0
    text = capsys.readouterr().out
    assert text.count("classgap audit: cross-entropy") == text.count("classgap fix: erm-seed") == 1
    assert "MR² (mean of 2): hard third " in text
    assert "error" in text
    for name in ("audit.html", "fix.html", "mr2.html"):
        assert f"Wrote {out / name}" in text
        assert (out / name).stat().st_size > 10_000
    assert (f"Wrote {out / 'fixed'}" in text) == (out / "fixed").exists() == ("nothing helped" not in text)
    if (out / "fixed").exists():
        assert load_fix(out / "fixed").class_names == tuple("0123456789")
    metrics = out / "mr2-seed0" / "metrics.jsonl"
    before = metrics.stat().st_mtime_ns
    assert main(["demo", "--epochs", "4", *flags]) == 0
    assert metrics.stat().st_mtime_ns == before
    assert capsys.readouterr().out == text
    assert main(["demo", "--epochs", "2", *flags]) == 2
    assert "--overwrite" in capsys.readouterr().err


@pytest.mark.slow
def test_demo_starts_over(tmp_path: Path) -> None:
    flags = ["--seeds", "1", "--out", str(tmp_path / "demo")]
    for epochs in (3, 2):
        assert main(["demo", "--epochs", str(epochs), *flags, "--overwrite"]) == 0
        metrics = tmp_path / "demo" / "mr2-seed0" / "metrics.jsonl"
        assert len(metrics.read_text().splitlines()) == epochs + 1  # the last line is of the test


def test_seeds_must_be_positive(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--seeds", "0"]) == 2
    assert "--seeds must be at least 1, got 0" in capsys.readouterr().err
