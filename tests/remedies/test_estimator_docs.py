"""The Python blocks of the section on scikit-learn run, in order, in one session."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs" / "fix_sklearn.md"


def test_python_blocks_run(capsys):
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), flags=re.DOTALL)
    for block in blocks:
        exec(block, names)
    printed = capsys.readouterr().out
    before, after = map(float, re.search(r"balanced accuracy ([\d.]+) -> ([\d.]+)", printed).groups())
    assert after > before + 0.02
