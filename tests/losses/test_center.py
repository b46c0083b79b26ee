import pytest
import torch
import torch.nn.functional as F

from classgap.losses import CenterLoss

ONE, LOGITS = torch.tensor([[1.0, 1.0]]), torch.zeros(1, 2)


def test_worked_example_of_the_official_rule() -> None:
    loss = CenterLoss(2, 2)
    loss(LOGITS, torch.tensor([0]), features=ONE)
    assert loss.terms["center"].item() == 1.0  # the center is used before it moves
    assert loss.centers.tolist() == [[0.25, 0.25], [0.0, 0.0]]


def test_twice_the_strength_is_the_common_code_without_the_half() -> None:
    value = CenterLoss(2, 2, strength=2.0)(LOGITS, torch.tensor([0]), features=ONE)
    assert value.item() == pytest.approx(2 + torch.log(torch.tensor(2.0)).item())


def test_trained_centers_have_the_gradient_of_the_common_code() -> None:
    loss = CenterLoss(2, 2, strength=2.0, centers="trained")
    features = torch.tensor([[1.0, 1.0], [3.0, 0.0], [0.0, 5.0]])
    loss(torch.zeros(3, 2), torch.tensor([0, 0, 1]), features=features).backward()
    expected = 2 * torch.tensor([[-4.0, -1.0], [0.0, -5.0]]) / 3  # 2 Σ (c - f) / B, at c = 0
    torch.testing.assert_close(loss.centers.grad, expected)
    assert [name for name, _ in loss.named_parameters()] == ["centers"]


def test_running_centers_approach_the_class_mean() -> None:
    loss = CenterLoss(1, 3)
    features = torch.randn(20, 3)
    for _ in range(60):
        loss(torch.zeros(20, 1), torch.zeros(20, dtype=torch.long), features=features)
    torch.testing.assert_close(loss.centers[0], features.mean(dim=0))
    assert not list(loss.parameters())


def test_no_strength_is_cross_entropy_without_features() -> None:
    logits, targets = torch.randn(5, 3), torch.tensor([0, 1, 2, 0, 1])
    torch.testing.assert_close(CenterLoss(3, 2, strength=0)(logits, targets), F.cross_entropy(logits, targets))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"centers": "fixed"}, "centers must be one of .*got 'fixed'"),
        ({"rate": 0}, "rate must be a finite number > 0"),
        ({"strength": -1.0}, "strength must be a finite number >= 0"),
        ({"feature_dim": 0}, "feature_dim must be an integer >= 1"),
    ],
)
def test_invalid_arguments_are_rejected(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CenterLoss(3, **{"feature_dim": 2, **settings})


def test_wrong_width_names_both_numbers() -> None:
    with pytest.raises(ValueError, match=r"features must have 4 columns.*got 2"):
        CenterLoss(2, 4)(LOGITS, torch.tensor([0]), features=ONE)
