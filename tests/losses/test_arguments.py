import math
from collections import Counter

import numpy as np
import pytest
import torch

from classgap.losses.arguments import (
    check_bool,
    check_choice,
    check_class_weights,
    check_counts,
    check_float,
    check_fraction,
    check_int,
    check_norm_order,
    check_probability,
)


def test_good_values_pass() -> None:
    assert check_float("a", 2, gt=0) == 2.0
    assert check_int("a", 3, ge=3) == 3
    assert check_int("a", np.int64(3), ge=3) == 3
    assert check_float("a", np.float32(0.5)) == 0.5
    assert check_bool("a", False) is False
    assert check_fraction("a", 0) == 0.0
    assert check_probability("a", 1) == 1.0
    assert check_norm_order("a", math.inf) == math.inf
    assert check_choice("a", "x", ("x", "y")) == "x"
    assert check_counts("a", torch.tensor([1, 2])).tolist() == [1.0, 2.0]
    assert check_class_weights("a", [0, 2.5], 2).tolist() == [0.0, 2.5]


def test_counts_in_a_mapping_are_rejected() -> None:
    with pytest.raises(ValueError, match=r"a must be a list .*got a Counter"):
        check_counts("a", Counter({0: 3, 1: 2}))


@pytest.mark.parametrize("value", [math.nan, math.inf, True, "1", None])
def test_check_float_rejects(value) -> None:
    with pytest.raises(ValueError, match="a must be a finite number"):
        check_float("a", value)


@pytest.mark.parametrize("value", [2.0, True, "3"])
def test_check_int_rejects(value) -> None:
    with pytest.raises(ValueError, match="a must be an integer >= 1"):
        check_int("a", value, ge=1)


@pytest.mark.parametrize("value", [0.99, math.nan, "2"])
def test_check_norm_order_rejects(value) -> None:
    with pytest.raises(ValueError, match="a must be a number >= 1"):
        check_norm_order("a", value)


@pytest.mark.parametrize("counts", [[1.0, -1.0], [1.0, math.nan], [1.0, math.inf]])
def test_check_counts_rejects(counts: list[float]) -> None:
    with pytest.raises(ValueError, match="for class 1"):
        check_counts("a", counts)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], r"a must be 2 numbers.*got shape \(1,\)"),
        ([1.0, -0.5], ">= 0, got -0.5 for class 1"),
        ([1.0, math.nan], "got nan for class 1"),
        ([0.0, 0.0], "positive for at least one class"),
    ],
)
def test_check_class_weights_rejects(weights: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_class_weights("a", weights, 2)


@pytest.mark.parametrize("value", [1.01, -0.1])
def test_check_probability_rejects(value: float) -> None:
    with pytest.raises(ValueError, match="a must be "):
        check_probability("a", value)
