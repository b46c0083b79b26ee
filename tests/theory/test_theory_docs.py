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


def test_the_drawn_complexity_is_below_its_bound_and_not_far_from_it(page: dict) -> None:
    assert page["limit"] / 2**0.5 < page["drawn"].value + 3 * page["drawn"].standard_error
    assert page["drawn"].value - 3 * page["drawn"].standard_error < page["limit"]
    assert page["lemma"].risk < page["bound"].risk


def test_the_loss_of_some_samples_falls_in_gamma(page: dict) -> None:
    wrong = page["logits"].argmax(dim=1) != page["y"]
    assert 0 < (page["slopes"] < 0).sum() <= wrong.sum()
    right_classes = [k for k in range(10) if not wrong[page["y"] == k].any()]
    assert all(page["trained"][k] == 0 for k in right_classes)


def test_the_variances_and_the_pulls_are_ordered(page: dict) -> None:
    found = page["variances"]
    assert (found.log_2 <= found.linear_2).all()
    assert (found.linear_2 <= found.trace_2).all()
    assert (page["means"] <= page["pull"]).all()
    assert (page["neighbors"] == page["y"][page["held_out"]]).float().mean() > 0.9


def test_scaling_multiplies_the_dispersion_and_keeps_predictions(page: dict) -> None:
    assert page["same"] > 0.995
    torch.testing.assert_close(page["lmdl"].class_dispersion(page["grown"], page["y"], 10), 3 * page["dispersion"])
