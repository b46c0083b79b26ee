"""The first page works from top to bottom, and its figures are the ones that the commands print."""

import re
from pathlib import Path

from doc_pages import prose, read_page, run_page


def test_the_page_works_and_its_figures_are_printed(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    printed = run_page("index.md")
    figures = re.findall(r"[+−]?\d+\.\d(?= %| points| to)", prose(read_page("index.md")))
    assert len(figures) >= 8
    assert not [figure for figure in figures if figure not in printed]
