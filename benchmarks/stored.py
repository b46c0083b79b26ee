"""Stored results of the benchmarks, and the sections of pages that are generated from them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from classgap._atomic_write import atomic_write_text

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"


@dataclass(frozen=True)
class Section:
    """Part of a page between ``<!-- name -->`` and ``<!-- end of name -->``, both on lines of their own.

    Attributes:
        page: path below the root of the repository.
        name: of the section.
    """

    page: str
    name: str

    def read(self) -> str:
        """Return the text between the markers, without surrounding blank lines."""
        return self._split()[1].strip("\n")

    def write(self, text: str) -> None:
        """Replace the text between the markers."""
        before, _, after = self._split()
        atomic_write_text(ROOT / self.page, before + "\n\n" + text.strip("\n") + "\n\n" + after)

    def _split(self) -> tuple[str, str, str]:
        begin, end = f"<!-- {self.name} -->", f"<!-- end of {self.name} -->"
        text = (ROOT / self.page).read_text(encoding="utf-8")
        if (text.count(begin), text.count(end)) != (1, 1) or text.index(begin) > text.index(end):
            raise ValueError(f"{self.page} must have one section between {begin} and {end}")
        before, _, rest = text.partition(begin)
        shown, _, after = rest.partition(end)
        return before + begin, shown, end + after


def signed(value: float) -> str:
    """Format a change with one decimal and its sign; 0 has none."""
    text = f"{value:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", "−")


def environment() -> dict[str, Any]:
    """PyTorch version, CPUs that this process may use, and threads of PyTorch."""
    import torch

    return {"torch": torch.__version__, "cpus": len(os.sched_getaffinity(0)), "threads": torch.get_num_threads()}


def read(path: Path) -> Any:
    """Read a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


def write(path: Path, results: Any) -> None:
    """Replace a JSON file atomically."""
    atomic_write_text(path, json.dumps(results, indent=1) + "\n")


def read_lines(path: Path) -> list[Any]:
    """Read a file of JSON lines, which need not exist. What a killed process left of a last line is ignored."""
    return [json.loads(line) for line in _whole_lines(path)]


def append_line(path: Path, result: Any) -> None:
    """Append to a file of JSON lines; what a killed process left of a last line is removed."""
    whole = "".join(_whole_lines(path))
    if path.exists() and len(whole.encode()) < path.stat().st_size:
        atomic_write_text(path, whole)
    with path.open("a", encoding="utf-8") as file:  # several processes may append
        file.write(json.dumps(result) + "\n")


def write_lines(path: Path, results: Iterable[Any]) -> None:
    """Replace a file of JSON lines atomically."""
    atomic_write_text(path, "".join(json.dumps(each) + "\n" for each in results))


def _whole_lines(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
    return [line for line in lines if line.endswith("\n")]
