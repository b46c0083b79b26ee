"""docs/pitfalls.md shows the effect of each mistake, with the numbers that its blocks print."""

import re
from pathlib import Path

from doc_pages import read_page, run_page


def test_the_page_prints_what_it_states(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    printed = run_page("pitfalls.md")
    found = re.search(r"gap ([\d.]+) points; same thirds on new samples: ([\d.]+)", printed)
    gap, fresh = map(float, found.groups())
    assert gap > 10 > 5 > fresh
    seen, none = map(int, re.findall(r"^(\d+) (?:of 1000 )?classes changed", printed, flags=re.MULTILINE))
    assert seen > none == 0


def test_every_pitfall_says_what_is_right():
    sections = read_page("pitfalls.md").split("\n## ")[1:]
    assert len(sections) >= 12
    assert all("**Wrong:**" in section and "**Right:**" in section for section in sections)
