"""docs/methods.md is up to date, and updating it keeps the handwritten part."""

import re
import resource
import sys
from pathlib import Path

import pytest

from classgap.methods.catalog import METHODS
from scripts import load_script

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def generator():
    return load_script("docs/generate_methods.py")


def test_the_page_is_up_to_date(generator) -> None:
    written = (DOCS / "methods.md").read_text(encoding="utf-8")
    assert written == generator.update(written), "docs/methods.md is outdated: run make docs"


def test_sections_quote_the_benchmark(generator) -> None:
    written = (DOCS / "methods.md").read_text(encoding="utf-8")
    sections = {part.split("\n")[0]: part for part in written.split("\n## ")[1:]}
    (row,) = re.findall(r"^\| mr2 \| (.+) \|$", sections["Benchmark"], flags=re.MULTILINE)
    chosen, accuracy, _, _, hard, *_ = row.split(" | ")
    assert f"`{chosen}`): hard third {hard} %, accuracy {accuracy} %; cross-entropy: " in sections["mr2"]
    assert all("Measured" in sections[name] for name in METHODS.names())


def test_the_handwritten_part_is_kept(generator) -> None:
    assert generator.update(f"old\n{generator.END}\nmeasured\n") == generator.generate() + "measured\n"
    assert generator.update("") == generator.generate()


def test_a_failed_write_keeps_the_page(generator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, old = tmp_path / "methods.md", f"old\n{generator.END}\nmeasured\n"
    path.write_text(old)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    monkeypatch.setattr(sys, "argv", ["generate_methods.py", str(path)])
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, hard))  # as on a full disk
    try:
        with pytest.raises(OSError, match="File too large"):
            generator.main()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_text() == old
    generator.main()
    assert path.read_text() == generator.generate() + "measured\n"


def test_cells_of_tables_are_escaped(generator) -> None:
    assert generator.table(("a", "b"), [("1", "x|y")]) == "| a | b |\n|---|---|\n| 1 | x\\|y |"
