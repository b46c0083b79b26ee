import pytest
import torch
import torch.nn.functional as F

from classgap.losses import SpreadOutLoss


def term(features: list[list[float]], targets: list[int], pairs: str = "different") -> float:
    loss = SpreadOutLoss(2, pairs=pairs)
    loss(torch.zeros(len(targets), 2), torch.tensor(targets), features=torch.tensor(features))
    return loss.terms["spread"].item()


def test_worked_examples() -> None:
    assert term([[1.0, 0.0], [0.0, 7.0]], [0, 1]) == 0.0
    assert term([[1.0, 0.0], [5.0, 0.0]], [0, 1]) == pytest.approx(1.5)


def test_pairs_of_one_class_count_only_if_all_do() -> None:
    assert term([[1.0, 0.0], [5.0, 0.0]], [0, 0]) == 0.0
    assert term([[1.0, 0.0], [5.0, 0.0]], [0, 0], pairs="all") == pytest.approx(1.5)


def test_random_directions_are_spread_out() -> None:
    targets = [k % 2 for k in range(600)]
    assert term(torch.randn(600, 16).tolist(), targets) < 1e-3
    assert term((torch.randn(600, 16) + 1).tolist(), targets) > 0.1


def test_no_strength_is_cross_entropy_without_features() -> None:
    logits, targets = torch.randn(5, 3), torch.tensor([0, 1, 2, 0, 1])
    torch.testing.assert_close(SpreadOutLoss(3, strength=0)(logits, targets), F.cross_entropy(logits, targets))


def test_invalid_pairs_are_rejected() -> None:
    with pytest.raises(ValueError, match=r"pairs must be one of .*got 'none'"):
        SpreadOutLoss(3, pairs="none")
