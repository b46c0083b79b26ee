import math
from collections import Counter

import numpy as np
import pytest
import torch

from classgap.losses.arguments import (
    norm_order,
    number,
    one_of,
    positive_counts,
    probability,
    share,
    weight_per_class,
    whole_number,
    yes_or_no,
)


def test_good_values_pass() -> None:
    assert number("a", 2, above=0) == 2.0
    assert whole_number("a", 3, at_least=3) == 3
    assert whole_number("a", np.int64(3), at_least=3) == 3
    assert number("a", np.float32(0.5)) == 0.5
    assert yes_or_no("a", False) is False
    assert share("a", 0) == 0.0
    assert probability("a", 1) == 1.0
    assert norm_order("a", math.inf) == math.inf
    assert one_of("a", "x", ("x", "y")) == "x"
    assert positive_counts("a", torch.tensor([1, 2])).tolist() == [1.0, 2.0]
    assert weight_per_class("a", [0, 2.5], 2).tolist() == [0.0, 2.5]


def test_counts_by_name_are_refused() -> None:
    with pytest.raises(ValueError, match="a must be a list, the count of class 0 first; got a Counter"):
        positive_counts("a", Counter({0: 3, 1: 2}))


@pytest.mark.parametrize("value", [math.nan, math.inf, True, "1", None])
def test_what_is_no_number_is_refused(value) -> None:
    with pytest.raises(ValueError, match="a must be a finite number"):
        number("a", value)


@pytest.mark.parametrize("value", [2.0, True, "3"])
def test_what_is_no_whole_number_is_refused(value) -> None:
    with pytest.raises(ValueError, match="a must be a whole number of at least 1"):
        whole_number("a", value, at_least=1)


@pytest.mark.parametrize("value", [0.99, math.nan, "2"])
def test_what_is_no_norm_is_refused(value) -> None:
    with pytest.raises(ValueError, match="a must be a number from 1 to infinity"):
        norm_order("a", value)


@pytest.mark.parametrize("counts", [[1.0, -1.0], [1.0, math.nan], [1.0, math.inf]])
def test_counts_that_are_no_counts_are_refused(counts: list[float]) -> None:
    with pytest.raises(ValueError, match="for class 1"):
        positive_counts("a", counts)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], r"a must be 2 numbers, one a class; got shape \(1,\)"),
        ([1.0, -0.5], "at least 0 for every class; got -0.5 for class 1"),
        ([1.0, math.nan], "got nan for class 1"),
        ([0.0, 0.0], "above 0 for some class"),
    ],
)
def test_weights_that_are_no_weights_are_refused(weights: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        weight_per_class("a", weights, 2)


@pytest.mark.parametrize("value", [1.01, -0.1])
def test_what_is_no_probability_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="a must be a "):
        probability("a", value)
