import pytest
import torch
import torch.nn.functional as F

from classgap.losses import BalancedSoftmaxLoss, LogitAdjustedLoss

LOGITS, TARGETS = torch.randn(5, 3), torch.tensor([0, 1, 2, 0, 1])
COUNTS = [70, 20, 10]


def test_worked_examples() -> None:
    rare, common = (LogitAdjustedLoss([90, 10])(torch.zeros(1, 2), torch.tensor([y])).item() for y in (1, 0))
    assert rare == pytest.approx(2.302585, abs=1e-6)
    assert common == pytest.approx(0.105361, abs=1e-6)


@pytest.mark.parametrize(
    "loss", [LogitAdjustedLoss([7, 7, 7]), LogitAdjustedLoss(COUNTS, tau=0), BalancedSoftmaxLoss([4] * 3)]
)
def test_uniform_counts_or_no_tau_are_cross_entropy(loss) -> None:
    torch.testing.assert_close(loss(LOGITS, TARGETS), F.cross_entropy(LOGITS, TARGETS))


def test_balanced_softmax_adds_the_logarithm_of_counts() -> None:
    expected = F.cross_entropy(LOGITS + torch.tensor(COUNTS).log(), TARGETS)
    torch.testing.assert_close(BalancedSoftmaxLoss(COUNTS)(LOGITS, TARGETS), expected)
    torch.testing.assert_close(LogitAdjustedLoss(COUNTS)(LOGITS, TARGETS), expected)


def test_soft_targets_mix_the_adjusted_losses() -> None:
    loss, mixed = LogitAdjustedLoss(COUNTS), torch.tensor([[0.25, 0.75, 0.0]] * 5)
    expected = 0.25 * loss(LOGITS, torch.zeros(5).long()) + 0.75 * loss(LOGITS, torch.ones(5).long())
    torch.testing.assert_close(loss(LOGITS, mixed), expected)


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(ValueError, match="tau must be a finite number >= 0"):
        LogitAdjustedLoss(COUNTS, tau=-1)
    with pytest.raises(ValueError, match=r"class_counts .*got 0 for class 1"):
        BalancedSoftmaxLoss([3, 0])
