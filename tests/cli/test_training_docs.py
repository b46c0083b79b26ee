"""Every command and every snippet of docs/training.md works, in the order in which a reader meets them."""

import re
import shlex
from pathlib import Path

import pytest

from classgap.cli import main

DOCS = Path(__file__).parents[2] / "docs" / "training.md"


def test_the_page_works_from_top_to_bottom(tmp_path: Path, monkeypatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLASSGAP_CACHE", str(tmp_path / "cache"))
    text = DOCS.read_text(encoding="utf-8")
    names: dict[str, object] = {}
    outputs = []
    for kind, block in re.findall(r"```(python|console|yaml)\n(.*?)```", text, flags=re.DOTALL):
        if kind == "yaml":
            Path("small.yaml").write_text(block)
        elif kind == "python":
            exec(block, names)
        else:
            for line in block.splitlines():
                program, *words = shlex.split(line)
                assert program == "classgap"
                assert main(words) == 0, line
                outputs.append(capsys.readouterr().out)
    assert "is finished" in outputs[4]
    assert {"diff.html", "small.html", "runs"} <= {path.name for path in tmp_path.iterdir()}
