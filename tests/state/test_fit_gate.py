import pytest
import torch

from classgap.state import FitGate


def test_it_is_closed_at_chance_and_open_at_certainty() -> None:
    gate = FitGate(10, decay=0.9)
    assert gate.value() == 0
    for _ in range(300):
        gate.update(torch.tensor(0.1))
    assert gate.value().item() == pytest.approx(0, abs=1e-6)
    for _ in range(300):
        gate.update(torch.tensor(1.0))
    assert gate.value().item() == pytest.approx(1, abs=1e-6)


def test_worse_than_chance_is_closed_too() -> None:
    gate = FitGate(2, decay=0.0)
    gate.update(torch.tensor(0.1))
    assert gate.value() == 0


def test_it_follows_a_moving_average() -> None:
    gate = FitGate(4, decay=0.95)
    expected = 0.25
    for probability in (0.3, 0.9, 0.5):
        gate.update(torch.tensor(probability))
        expected = 0.95 * expected + 0.05 * probability
    assert gate.confidence.item() == pytest.approx(expected)
    assert gate.value().item() == pytest.approx((expected - 0.25) / 0.75)


def test_one_class_never_opens() -> None:
    gate = FitGate(1, decay=0.5)
    gate.update(torch.tensor(1.0))
    assert gate.value() == 0
