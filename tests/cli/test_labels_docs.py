"""Every command and every snippet of docs/labels.md works, in the order in which a reader meets them."""

import json
import re
from pathlib import Path

from doc_pages import read_commands, read_page, run_page


def test_the_page_works_from_top_to_bottom(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run_page("labels.md")
    assert capsys.readouterr().err == ""
    assert len(read_commands("labels.md")) == 4
    found = json.loads(Path("superclasses_audit.json").read_text())["superclasses"]
    assert 0 < found["within"] < found["errors"]


def test_documented_keys_exist():
    """The keys of the table of ``valid`` are those of its records."""
    from dataclasses import fields

    from classgap.audit.valid_results import ValidOverall, ValidResult

    text = read_page("labels.md")
    known = {field.name for field in fields(ValidResult)} | {field.name for field in fields(ValidOverall)}
    documented = set(re.findall(r"`valid\.(\w+)", text))
    assert {"overall", "groups", "gap", "gap_change", "reranked_easy_hard", "classes"} <= documented <= known
