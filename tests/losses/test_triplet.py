import math

import pytest
import torch
import torch.nn.functional as F

from classgap.losses import TripletLoss

FEATURES, TARGETS = torch.tensor([[0.0], [1.0], [-0.5]]), torch.tensor([0, 0, 1])  # d⁺ = 1 and d⁻ = 0.5 for the first


def terms(**settings) -> list[float]:
    loss = TripletLoss(2, reduction="none", **settings)
    return (loss(torch.zeros(3, 2), TARGETS, features=FEATURES) - math.log(2)).tolist()


def test_worked_example() -> None:
    assert terms(margin=0.3) == pytest.approx([0.8, 0.0, 0.0], abs=1e-6)


def test_soft_margin() -> None:
    assert terms(margin="soft") == pytest.approx([math.log(1 + math.exp(0.5)), math.log(1 + math.exp(-0.5)), 0.0])


def test_products_as_the_elm_paper_writes_them() -> None:
    # γ + f·f⁻ - f·f⁺: 1 + 0 - 0, and 1 - 0.5 - 0
    assert terms(margin=1.0, distance="product") == pytest.approx([1.0, 0.5, 0.0])


def test_the_hardest_are_taken() -> None:
    features = torch.tensor([[0.0], [1.0], [2.0], [4.0], [9.0]])
    loss = TripletLoss(2, margin=0.0, reduction="none")
    each = loss(torch.zeros(5, 2), torch.tensor([0, 0, 0, 1, 1]), features=features) - math.log(2)
    assert each.tolist() == pytest.approx([0.0, 0.0, 0.0, 5 - 2, 0.0], abs=1e-6)


def test_no_strength_is_cross_entropy_without_features() -> None:
    logits, targets = torch.randn(5, 3), torch.tensor([0, 1, 2, 0, 1])
    torch.testing.assert_close(TripletLoss(3, strength=0)(logits, targets), F.cross_entropy(logits, targets))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"margin": -0.3}, "margin must be a finite number >= 0 or 'soft'"),
        ({"distance": "cosine"}, "distance must be one of 'euclidean'"),
        ({"normalize": 1}, "normalize must be True or False"),
    ],
)
def test_invalid_arguments_are_rejected(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TripletLoss(3, **settings)
