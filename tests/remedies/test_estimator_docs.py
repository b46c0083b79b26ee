"""The Python blocks of the section on scikit-learn run, in order, in one session."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs" / "fix.md"


def test_python_blocks_run(capsys):
    names: dict[str, object] = {}
    section = DOCS.read_text(encoding="utf-8").partition("## In scikit-learn")[2]
    blocks = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
    assert blocks
    for block in blocks:
        exec(block, names)
    printed = capsys.readouterr().out
    before, after = map(float, re.search(r"balanced accuracy ([\d.]+) -> ([\d.]+)", printed).groups())
    assert after > before + 0.02
