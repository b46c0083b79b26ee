"""The tables of docs/remedies.md are those of the stored results, and the page states no other figures."""

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def remedies():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import remedies
    finally:
        sys.path.pop(0)
    return remedies


def test_page_shows_the_stored_results(remedies):
    page = (ROOT / "docs" / "remedies.md").read_text(encoding="utf-8")
    shown = page.partition(remedies.BEGIN)[2].partition(remedies.END)[0]
    assert shown.strip() == remedies.tables().strip()


def test_table_is_the_mean_over_splits(remedies):
    own = [line for line in remedies.stored() if line["problem"] == "20news"]
    hard = [100 * line.get("proof", {"hard": 0.0})["hard"] for line in own]
    first = remedies.markdown_table(own).splitlines()[2]
    assert first.startswith(f"| **classgap fix** | {remedies.signed(float(np.mean(hard)))} (")


def test_no_split_is_stored_twice(remedies):
    keys = [(line["problem"], line["split"]) for line in remedies.stored()]
    assert len(keys) == len(set(keys))
    assert {problem for problem, _ in keys} <= set(remedies.TITLES)


def test_splits_are_disjoint_and_stratified(remedies):
    targets = np.repeat(np.arange(5), 20)
    fit, test = remedies.random_split(targets, 0.3, seed=1)
    assert sorted([*fit, *test]) == list(range(100))
    assert np.bincount(targets[fit]).tolist() == [6] * 5
