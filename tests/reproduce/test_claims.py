"""Each claim counts once, however many numbers of the papers rest on its runs."""

from dataclasses import replace
from pathlib import Path

import pytest

from classgap.reproduce.catalog import load_recipe
from classgap.reproduce.cells import make_plan
from classgap.reproduce.claims import claims_of, distinct_claims, rows_that_share_runs
from classgap.reproduce.results import RecipeResult, collect
from classgap.reproduce.store import ResultStore

STORE = Path(__file__).parents[2] / "results"
pytestmark = pytest.mark.skipif(not STORE.exists(), reason="the source distribution has no results/")


def measured(name: str) -> RecipeResult:
    return collect(make_plan(load_recipe(name), "cpu", 5), ResultStore(STORE))


def test_one_pair_of_runs_for_four_networks_counts_once() -> None:
    result = measured("mr2-table-2-release")
    assert len(claims_of(result)) == 16
    assert [len(claim.entries) for claim in distinct_claims([result])] == [4, 4, 4, 4]
    networks = ["ResNet-20", "PreAct-20", "PreAct-32", "WRN-22-10"]
    assert rows_that_share_runs(result.part("a")) == [networks, [f"{each} + MR2" for each in networks]]


def test_the_same_runs_in_two_recipes_count_once() -> None:
    (claim,) = distinct_claims([measured("lmdl-figure-6"), measured("lmdl-figure-7")])
    assert [name for name, _ in claim.entries] == ["lmdl-figure-6", "lmdl-figure-7"]


def test_another_metric_of_the_same_runs_is_another_claim() -> None:
    result = measured("mr2-table-8")
    assert len(distinct_claims([result])) == len(claims_of(result)) == 10


def test_the_least_favorable_verdict_counts() -> None:
    result = measured("mr2-table-2-release")
    entries = [
        replace(each, verdict="not reproduced") if (each.row, each.column) == ("PreAct-20 + MR2", "hard") else each
        for each in result.entries
    ]
    verdicts = [claim.verdict for claim in distinct_claims([replace(result, entries=tuple(entries))])]
    assert verdicts.count("not reproduced") == 1


@pytest.mark.parametrize(("part", "row", "column"), [("a", "EQL", "hard"), ("a", "JTT", "hard"), ("b", "LfF", "easy")])
def test_identical_runs_and_accuracies_at_the_ceiling_decide_nothing(part: str, row: str, column: str) -> None:
    (entry,) = (each for each in measured("mr2-table-1").part(part) if (each.row, each.column) == (row, column))
    assert entry.verdict == "not testable"
