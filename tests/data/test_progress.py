import io
import sys

import pytest

from classgap.data.sources import progress as module
from classgap.data.sources.progress import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    with progress("decoding images", 4) as done:
        done(3)
        done(1)
    return stream.getvalue()


def test_what_takes_long_shows_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE", -1.0)
    assert "decoding images" in shown(Terminal(), monkeypatch)


def test_what_is_quick_shows_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(Terminal(), monkeypatch) == ""


def test_a_file_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE", -1.0)
    assert shown(io.StringIO(), monkeypatch) == ""
