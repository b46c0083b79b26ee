"""Every Python block of the pages on trainers runs, each page in a session of its own."""

import re
from pathlib import Path

import pytest

PAGES = sorted(set((Path(__file__).parents[2] / "docs" / "trainers").glob("*.md")))


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem != "index"], ids=lambda page: page.stem)
def test_the_blocks_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if page.stem == "mlflow":
        pytest.importorskip("mlflow")
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert blocks
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks:
        exec(compile(block, page.name, "exec"), names)


def test_the_overview_links_every_page() -> None:
    overview = next(page for page in PAGES if page.stem == "index").read_text(encoding="utf-8")
    assert {f"({page.name}" for page in PAGES if page.stem != "index"} <= set(re.findall(r"\([\w-]+\.md", overview))
