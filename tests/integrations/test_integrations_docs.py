"""Every Python block of the page runs, each section in a session of its own."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs" / "integrations.md"
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", DOCS.read_text(), flags=re.DOTALL | re.MULTILINE))


@pytest.mark.parametrize("title", SECTIONS)
def test_the_blocks_of_a_section_run(title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", SECTIONS[title], flags=re.DOTALL)
    assert blocks
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks:
        exec(compile(block, f"{DOCS.name}: {title}", "exec"), names)
