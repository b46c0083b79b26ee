import io
import sys

import pytest

from classgap.data.sources import parallel
from classgap.data.sources.parallel import map_in_threads, progress_bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_bar("decoding images", 4) as advance:
        advance(3)
        advance(1)
    return stream.getvalue()


def test_slow_work_shows_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_DELAY", -1.0)
    assert "decoding images" in shown(Terminal(), monkeypatch)


def test_quick_work_shows_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(Terminal(), monkeypatch) == ""


def test_a_file_gets_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_DELAY", -1.0)
    assert shown(io.StringIO(), monkeypatch) == ""


@pytest.mark.parametrize("workers", [1, 3, None])
def test_results_are_in_order(workers: int | None) -> None:
    counts: list[int] = []
    assert map_in_threads(lambda row: row**2, range(200), workers=workers, advance=counts.append) == [
        row**2 for row in range(200)
    ]
    assert sum(counts) == 200
    assert map_in_threads(abs, []) == []
