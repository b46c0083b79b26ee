"""Every command and every snippet of docs/labels.md works, in the order in which a reader meets them."""

import json
import re
import shlex
from pathlib import Path

from classgap.cli import main

DOCS = Path(__file__).parents[2] / "docs" / "labels.md"


def test_the_page_works_from_top_to_bottom(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    commands = 0
    for kind, block in re.findall(r"```(python|console)\n(.*?)```", DOCS.read_text(encoding="utf-8"), flags=re.DOTALL):
        if kind == "python":
            exec(block, names)
            continue
        for line in block.splitlines():
            program, *words = shlex.split(line)
            assert program == "classgap"
            assert main(words) == 0, line
            assert capsys.readouterr().err == ""
            commands += 1
    assert commands == 4
    found = json.loads(Path("superclasses_audit.json").read_text())["superclasses"]
    assert 0 < found["within"] < found["errors"]


def test_documented_keys_exist():
    """The keys of the table of ``valid`` are those of its records."""
    from dataclasses import fields

    from classgap.audit.valid_results import ValidOverall, ValidResult

    text = DOCS.read_text(encoding="utf-8")
    known = {field.name for field in fields(ValidResult)} | {field.name for field in fields(ValidOverall)}
    documented = set(re.findall(r"`valid\.(\w+)", text))
    assert {"overall", "groups", "gap", "gap_change", "reranked_easy_hard", "classes"} <= documented <= known
