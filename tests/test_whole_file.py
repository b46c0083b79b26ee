import os
import stat
from pathlib import Path

import pytest

from classgap.whole_file import write_whole


def test_it_writes_and_replaces_with_usual_permissions(tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    for text in ("first\n", "zweite – äöü\n"):
        write_whole(target, text)
        assert target.read_bytes() == text.encode()
    plain = tmp_path / "plain"
    plain.touch()
    assert stat.S_IMODE(target.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_a_failure_keeps_what_was_there_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "page.html"
    write_whole(target, "good")

    def fail(*args: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_whole(target, "bad")
    assert target.read_text() == "good"
    assert os.listdir(tmp_path) == ["page.html"]
