"""Every command and every snippet of docs/audit.md works, in the order in which a reader meets them."""

import re
import shlex
from pathlib import Path

from classgap.cli import main

DOCS = Path(__file__).parents[2] / "docs" / "audit.md"


def test_the_page_works_from_top_to_bottom(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = DOCS.read_text(encoding="utf-8")
    groups = re.search(r"`groups.json` contains `([^`]+)`", text)
    Path("groups.json").write_text(groups[1])
    names: dict[str, object] = {}
    commands = 0
    for kind, block in re.findall(r"```(python|console)\n(.*?)```", text, flags=re.DOTALL):
        if kind == "python":
            exec(block, names)
            continue
        for line in block.splitlines():
            program, *words = shlex.split(line)
            assert program == "classgap"
            assert main(words) == 0, line
            assert capsys.readouterr().err == ""
            commands += 1
    assert commands >= 8
    pages = {"linear.html", "diff.html", "again.html", "from_python.html", "linear_neighbors.html"}
    assert pages | {"neighbors.json", "classes.csv", "diff.json"} <= {path.name for path in tmp_path.iterdir()}
