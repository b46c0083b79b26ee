"""docs/results.md is what ``make docs`` generates from results/."""

import importlib.util
from pathlib import Path

import pytest

from classgap.reproduce.store import ResultStore

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(not (ROOT / "results").exists(), reason="the source distribution has no results/")
def test_the_page_is_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("generate_results", ROOT / "docs" / "generate_results.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert page == module.generate(ResultStore(ROOT / "results"))
    first_screen = page.split("\n## ")[1]
    assert "| verdict |" in first_screen
    assert "the full scale needs" in first_screen
