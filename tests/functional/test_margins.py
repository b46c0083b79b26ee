import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from classgap.functional import class_margins, squared_norm
from classgap.functional.margins import SMALLEST_MARGIN

SIZES = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=20)


def test_worked_example() -> None:
    torch.testing.assert_close(class_margins(torch.tensor([8.0, 1.0])), torch.tensor([4 / 3, 2 / 3]))


@settings(deadline=None, max_examples=50)
@given(SIZES, st.floats(0.1, 5))
def test_margins_average_to_their_mean_and_follow_the_cube_root(sizes: list[float], mean: float) -> None:
    gamma = class_margins(torch.tensor(sizes, dtype=torch.float64), mean=mean)
    roots = [size ** (1 / 3) for size in sizes]
    expected = [mean * len(roots) * root / sum(roots) for root in roots]
    torch.testing.assert_close(gamma, torch.tensor(expected, dtype=torch.float64))
    assert gamma.mean().item() == pytest.approx(mean)


def test_classes_never_seen_get_the_mean_and_do_not_move_the_others() -> None:
    seen = class_margins(torch.tensor([8.0, 1.0]), mean=2.0)
    gamma = class_margins(torch.tensor([8.0, 0.0, 1.0, 0.0]), mean=2.0)
    torch.testing.assert_close(gamma, torch.stack([seen[0], torch.tensor(2.0), seen[1], torch.tensor(2.0)]))
    assert class_margins(torch.zeros(3), mean=2.0).tolist() == [2.0, 2.0, 2.0]


def test_a_vanishing_class_keeps_a_margin_above_zero() -> None:
    gamma = class_margins(torch.tensor([1e-30, 1.0]))
    assert gamma[0].item() == pytest.approx(SMALLEST_MARGIN)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, 5.0, math.inf])
def test_squared_norms_match_a_loop(p: float) -> None:
    rows = torch.randn(6, 4, dtype=torch.float64)
    for row, value in zip(rows.tolist(), squared_norm(rows, p).tolist(), strict=True):
        expected = max(map(abs, row)) if math.isinf(p) else sum(abs(x) ** p for x in row) ** (1 / p)
        assert value == pytest.approx(expected**2)


@pytest.mark.parametrize("scale", [1e-15, 1e15])
def test_high_powers_neither_overflow_nor_vanish(scale: float) -> None:
    value = squared_norm(torch.tensor([[3.0, 4.0]]) * scale, 5.0)
    assert value.item() == pytest.approx(((3**5 + 4**5) ** 0.4) * scale**2, rel=1e-4)
    assert squared_norm(torch.zeros(1, 3), 3.0).item() == 0
