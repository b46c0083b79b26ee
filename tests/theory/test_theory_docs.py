"""Every Python block of docs/theory.md runs, and its statements hold for the trained network."""

import re
from pathlib import Path

import pytest
import torch

PAGE = Path(__file__).parents[2] / "docs" / "theory.md"


@pytest.fixture(scope="module")
def page() -> dict:
    names: dict = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    return names


def test_the_network_was_trained(page: dict) -> None:
    assert (page["logits"].argmax(dim=1) == page["y"]).float().mean() > 0.9


def test_the_bound_of_the_run_is_vacuous_because_of_its_complexity(page: dict) -> None:
    assert page["bound"].vacuous
    assert page["bound"].complexity > 1 > page["bound"].risk + page["bound"].low_order


def test_fractions_of_the_complexity_sum_to_one(page: dict) -> None:
    assert page["fractions"].sum().item() == pytest.approx(1)


def test_optimal_margins_have_the_smallest_complexity(page: dict) -> None:
    complexity = {
        name: page["mr2"].rademacher_bound(page["sizes"], torch.full((10,), 100), gamma, weight_norm=1.0)
        for name, gamma in {
            "ones": torch.ones(10),
            "loss": page["loss"].margins() / page["loss"].margins().mean(),
            "optimal": page["best"].gamma_K,
        }.items()
    }
    assert complexity["optimal"] < min(complexity["ones"], complexity["loss"])


def test_the_pull_is_at_least_its_lower_bound(page: dict) -> None:
    assert (page["lower"].total_K <= page["pull"] + 1e-5).all()


def test_guarantees_of_zero_losses_hold(page: dict) -> None:
    result = page["result"]
    assert result.compact_loss == 0
    assert page["dispersion"].max() <= result.largest_dispersion
