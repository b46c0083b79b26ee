import math

import pytest
import torch
import torch.nn.functional as F

from classgap.functional import difficulty_weights, dynamic_tau
from classgap.losses import DifficultyBalancedLoss


@pytest.mark.parametrize(
    ("accuracies", "tau", "expected"),
    [
        ([0.9, 0.5, 0.1], 1.0, [0.2, 1.0, 1.8]),
        ([0.9, 0.5, 0.1], 2.0, [0.03 / 1.07, 0.75 / 1.07, 2.43 / 1.07]),
        ([0.3, 0.9], 0.0, [1.0, 1.0]),
        ([1.0, 0.5], 1.0, [0.0, 2.0]),
        ([1.0, 1.0], 1.0, [1.0, 1.0]),  # no errors
        ([0.0, 0.0], None, [1.0, 1.0]),
        ([0.7], None, [1.0]),
    ],
)
def test_worked_examples(accuracies: list[float], tau: float | None, expected: list[float]) -> None:
    found = difficulty_weights(torch.tensor(accuracies, dtype=torch.float64), tau)
    assert found.tolist() == pytest.approx(expected)


def test_the_dynamic_exponent_grows_with_the_spread() -> None:
    assert dynamic_tau(torch.tensor([0.8, 0.4]).double()) == pytest.approx(2 / (1 + math.exp(1 - 0.8 / 0.41)))
    assert dynamic_tau(torch.tensor([0.5, 0.5])) == pytest.approx(1, abs=0.01)
    assert dynamic_tau(torch.tensor([1.0, 0.0])) == pytest.approx(2)


def test_soft_targets_weigh_each_class() -> None:
    loss = DifficultyBalancedLoss(3, tau=1)
    loss.update_accuracies([0.9, 0.5, 0.1])
    logits, soft = torch.randn(4, 3), torch.softmax(torch.randn(4, 3), dim=1)
    expected = -(soft * torch.tensor([0.2, 1.0, 1.8]) * F.log_softmax(logits, dim=1)).sum(dim=1).mean()
    torch.testing.assert_close(loss(logits, soft), expected)


def test_weights_survive_a_checkpoint() -> None:
    loss, other = DifficultyBalancedLoss(3), DifficultyBalancedLoss(3)
    loss.update_accuracies([0.9, 0.5, 0.1])
    other.load_state_dict(loss.state_dict())
    logits, targets = torch.randn(4, 3), torch.tensor([0, 1, 2, 2])
    assert torch.equal(loss(logits, targets), other(logits, targets))
    assert not torch.allclose(other(logits, targets), F.cross_entropy(logits, targets))


@pytest.mark.parametrize("accuracies", [[0.5], [0.5, 1.5], [0.5, float("nan")], [-0.1, 0.5]])
def test_invalid_accuracies_are_rejected(accuracies: list[float]) -> None:
    loss = DifficultyBalancedLoss(2)
    with pytest.raises(ValueError, match=r"accuracies must be 2 numbers in \[0, 1\]"):
        loss.update_accuracies(accuracies)
    assert loss.weight.tolist() == [1.0, 1.0]


def test_an_invalid_exponent_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"tau must be .*'dynamic', got -1"):
        DifficultyBalancedLoss(2, tau=-1)
