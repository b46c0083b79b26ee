"""Every command and every snippet of docs/fix.md works, in the order in which a reader meets them."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import classgap as cg
from classgap.remedies.adjustments import Context, adjustments
from doc_pages import read_commands, read_page, run_page


def test_the_page_works_from_top_to_bottom(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    run_page("fix.md", namespace=names)
    assert capsys.readouterr().err == ""
    assert len(read_commands("fix.md")) >= 6
    result = json.loads(Path("fix.json").read_text(encoding="utf-8"))
    assert result["chosen"] is not None  # the page goes on to use it
    assert result["proof"]["hard"]["change"] > 0.02
    right = names["predictions"] == names["labels"][names["test"]]
    assert right.mean() == pytest.approx(result["proof"]["overall"]["after"])
    assert names["result"].chosen == result["chosen"]
    assert cg.load_fix("averaged").inputs in ("logits", "ensemble")
    assert {"fix.html", "from_python.html", "fixed_again"} <= {path.name for path in tmp_path.iterdir()}


def test_the_page_lists_the_adjustments():
    context = Context(3, "cost", np.array([5.0, 3.0, 1.0]), None, 1 - np.eye(3))
    found = {adjustment.name for adjustment in adjustments(context)}
    listed = set(re.findall(r"^\| `([a-z][a-z-]+)` \|", read_page("fix.md"), flags=re.MULTILINE))
    assert found | {"ensemble", "soup"} == listed
