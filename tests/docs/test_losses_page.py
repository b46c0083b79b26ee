"""Every block of docs/losses.md runs, in order, in one session."""

import re
from pathlib import Path

import classgap as cg
from doc_pages import read_page, run_page

PAGE = read_page("losses.md")


def test_the_page_works_from_top_to_bottom(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLASSGAP_CACHE", str(tmp_path / "cache"))
    run_page("losses.md")
    assert (tmp_path / "runs" / "from-python" / "report.html").exists()


def test_the_losses_of_the_table_exist() -> None:
    named = re.findall(r"^\| `(\w+Loss)` \|", PAGE, flags=re.MULTILINE)
    assert len(named) >= 5
    assert all(hasattr(cg.losses, name) for name in named)


def test_the_number_of_methods_is_stated_right() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    for text in (PAGE, readme):
        assert re.findall(r"(\d+) methods", text) == [str(len(cg.methods.names()))]
