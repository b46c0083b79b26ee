"""Every command and every snippet of docs/training.md works, in the order in which a reader meets them."""

import re
from pathlib import Path

from doc_pages import read_page, run_page


def test_the_page_works_from_top_to_bottom(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLASSGAP_CACHE", str(tmp_path / "cache"))
    settings = re.search(r"```yaml\n(.*?)```", read_page("training.md"), flags=re.DOTALL)
    Path("small.yaml").write_text(settings[1])
    printed = run_page("training.md")
    assert printed.count("The run in runs/small-1 is finished") == 1
    assert {"diff.html", "small.html", "runs"} <= {path.name for path in tmp_path.iterdir()}
