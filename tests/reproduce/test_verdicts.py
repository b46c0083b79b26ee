import math

import numpy as np
import pytest
from scipy import stats

from classgap.reproduce.verdicts import (
    Comparison,
    combine,
    compare_paired,
    deviation_interval,
    is_saturated,
    judge,
    judge_deviation,
)

RNG = np.random.default_rng(0)
VALUES, BASELINE = 70 + RNG.normal(size=5), 68 + RNG.normal(size=5)


def test_the_test_is_the_paired_t_test_of_scipy() -> None:
    found, oracle = compare_paired(VALUES, BASELINE), stats.ttest_rel(VALUES, BASELINE)
    assert found.p_value == pytest.approx(oracle.pvalue, rel=1e-9)
    interval = oracle.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), rel=1e-9)
    assert (found.n, found.mean) == (5, pytest.approx((VALUES - BASELINE).mean()))


def test_equal_differences_are_certain() -> None:
    assert compare_paired([3.0, 4.0], [1.0, 2.0]).p_value == 0.0
    assert compare_paired([3.0, 4.0], [3.0, 4.0]).p_value == 1.0


@pytest.mark.parametrize("mean", [5.0, 100.0])
def test_one_seed_is_never_reproduced(mean: float) -> None:
    assert judge(compare_paired([mean], [0.0]), 5.0, full=True, percent=True) == "same direction"
    assert judge(compare_paired([-mean], [0.0]), 5.0, full=True, percent=True) == "not reproduced"


@pytest.mark.parametrize(
    ("comparison", "expected", "full", "verdict"),
    [
        (Comparison(5, 2.0, 1.0, 3.0, 0.01), 3.0, False, "reproduced"),
        (Comparison(5, 2.0, -1.0, 5.0, 0.20), 3.0, False, "same direction"),
        (Comparison(5, -2.0, -3.0, -1.0, 0.01), 3.0, False, "not reproduced"),
        (Comparison(5, -2.0, -3.0, -1.0, 0.01), -3.0, False, "reproduced"),
        (Comparison(5, 1.0, 0.8, 1.2, 0.01), 3.0, False, "reproduced"),
        (Comparison(5, 1.0, 0.8, 1.2, 0.01), 3.0, True, "same direction"),  # below half of the paper's
        (Comparison(5, 2.0, 1.0, 3.0, 0.01), math.inf, True, "reproduced"),  # the paper has a picture only
        (Comparison(5, 0.2, -0.5, 0.9, 0.50), 0.1, False, "reproduced"),  # no difference, and precise enough
        (Comparison(5, 0.2, -3.0, 3.4, 0.80), 0.1, False, "same direction"),
        (Comparison(5, -22.0, -24.0, -20.0, 0.001), -0.2, False, "not reproduced"),
        (Comparison(1, 0.9), 0.0, False, "same direction"),
        (Comparison(1, 1.1), 0.0, False, "not reproduced"),
        (Comparison(3, math.nan), 3.0, False, "not reproduced"),  # a run diverged
        (None, 3.0, False, "not run"),
    ],
)
def test_rules(comparison: Comparison | None, expected: float, full: bool, verdict: str) -> None:
    assert judge(comparison, expected, full=full, percent=True) == verdict


def test_other_units_have_no_ties() -> None:
    assert judge(Comparison(5, 0.2, 0.1, 0.3, 0.01), 0.1, full=False, percent=False) == "reproduced"


def test_the_interval_of_a_deviation_holds_its_level() -> None:
    samples = RNG.normal(scale=2.0, size=(2000, 4))
    covered = [low <= 2.0 <= high for low, high in map(deviation_interval, samples)]
    assert np.mean(covered) == pytest.approx(0.95, abs=0.015)


def test_deviations_need_three_seeds() -> None:
    assert judge_deviation([1.0, 2.0], 0.7) == "not run"
    assert judge_deviation([1.0, 2.0, 3.0], 1.0) == "reproduced"
    assert judge_deviation([1.0, 2.0, 3.0], 0.1) == "not reproduced"


def test_accuracies_at_the_ceiling_or_at_zero_are_not_testable() -> None:
    assert is_saturated([100.0, 99.98], [99.96, 100.0])
    assert is_saturated([0.0, 0.0], [0.0, 0.0])
    assert not is_saturated([100.0, 100.0], [0.0, 0.0])
    assert not is_saturated([99.9, 99.9], [100.0, 100.0])


def test_the_verdict_of_a_recipe() -> None:
    assert combine(["reproduced", "not testable"]) == "reproduced"
    assert combine(["not testable"]) == "not testable"
    assert combine(["reproduced", "reproduced"]) == "reproduced"
    assert combine(["reproduced", "same direction"]) == "same direction"
    assert combine(["reproduced", "not reproduced"]) == "mixed"  # half of the claims point the other way
    assert combine(["smoke", "smoke"]) == "smoke"
    assert combine(["cannot be run here", "not run"]) == "cannot be run here"
