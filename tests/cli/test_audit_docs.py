"""Every command and every snippet of docs/audit.md works, in the order in which a reader meets them."""

import re
from pathlib import Path

from doc_pages import read_commands, read_page, run_page


def test_the_page_works_from_top_to_bottom(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    groups = re.search(r"`groups.json` contains `([^`]+)`", read_page("audit.md"))
    Path("groups.json").write_text(groups[1])
    run_page("audit.md")
    assert capsys.readouterr().err == ""
    assert len(read_commands("audit.md")) >= 8
    pages = {"linear.html", "diff.html", "again.html", "from_python.html", "linear_neighbors.html"}
    assert pages | {"neighbors.json", "classes.csv", "diff.json"} <= {path.name for path in tmp_path.iterdir()}
