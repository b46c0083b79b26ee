import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log1p

from classgap.theory import RiskBound, low_order_term, ramp_loss

few = settings(max_examples=100, deadline=None, derandomize=True, database=None)


@few
@given(margin=st.floats(-1e4, 1e4), width=st.floats(1e-3, 1e3))
def test_mr2_lemma_4_the_logistic_function_dominates_the_ramp(margin, width):
    ramp = ramp_loss(torch.tensor(margin, dtype=torch.float64), width).item()
    assert ramp == pytest.approx(min(1, max(0, 1 - margin / width)))
    logistic = log1p(np.exp(-margin / width)) / math.log(2) if margin / width > -700 else -margin / width
    assert ramp <= logistic + 1e-12


def test_the_ramp_touches_the_logistic_function_at_zero():
    assert ramp_loss(torch.zeros(1), 3.0).item() == 1  # log2(1 + e⁰) = 1: the constant 1/ln 2 cannot be smaller


def test_ramp_of_infinite_margins_is_finite():
    assert ramp_loss(torch.tensor([torch.inf, -torch.inf]), 1.0).tolist() == [0, 1]


def test_low_order_term_matches_hoeffding():
    assert low_order_term(50, 0.1).item() == pytest.approx(3 * math.sqrt(math.log(20) / 100))
    assert low_order_term(torch.tensor([2, 8]), 0.1).tolist() == pytest.approx(
        [3 * math.sqrt(math.log(20) / 4), 3 * math.sqrt(math.log(20) / 16)]
    )


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.5, math.nan])
def test_delta_outside_the_unit_interval_is_rejected(delta):
    with pytest.raises(ValueError, match="delta must be in"):
        low_order_term(10, delta)


def test_total_is_the_sum_and_vacuous_from_one_on():
    bound = RiskBound(torch.tensor([0.1, 0.5]), torch.tensor([0.2, 0.25]), torch.tensor([0.3, 0.25]))
    torch.testing.assert_close(bound.total, torch.tensor([0.6, 1.0]))
    assert bound.vacuous.tolist() == [False, True]
