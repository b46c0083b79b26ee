import pytest
import torch
import torch.nn.functional as F

from classgap.losses import FeatureNormLoss

LOGITS, TARGETS = torch.randn(4, 3), torch.tensor([0, 1, 2, -100])
FEATURES = torch.tensor([[3.0, 4.0], [0.0, 0.0], [1.0, 0.0], [100.0, 0.0]])


def test_the_penalty_is_the_mean_squared_norm_without_ignored_samples() -> None:
    loss = FeatureNormLoss(3, strength=0.5)
    value = loss(LOGITS, TARGETS, features=FEATURES)
    assert loss.terms["norm"].item() == pytest.approx(26 / 3)
    torch.testing.assert_close(value, F.cross_entropy(LOGITS, TARGETS) + 0.5 * 26 / 3)


def test_it_does_not_know_the_classes() -> None:
    features = FEATURES.clone().requires_grad_()
    for targets in (torch.tensor([0, 1, 2, 0]), torch.tensor([2, 2, 2, 2])):
        features.grad = None
        FeatureNormLoss(3, strength=0.5)(LOGITS, targets, features=features).backward()
        torch.testing.assert_close(features.grad, FEATURES / 4)


def test_without_strength_it_is_cross_entropy_and_needs_no_features() -> None:
    torch.testing.assert_close(FeatureNormLoss(3, strength=0)(LOGITS, TARGETS), F.cross_entropy(LOGITS, TARGETS))


@pytest.mark.parametrize("scale", [0.01, 1.0, 1000.0])
def test_auto_never_shrinks_features_more_than_twice_as_fast_as_cross_entropy_grows_them(scale: float) -> None:
    """Both forces by brute force: the loss of features that are a little larger, through a linear head."""
    torch.manual_seed(0)
    head, features, step = torch.nn.Linear(5, 3, bias=False).double(), torch.randn(6, 5, dtype=torch.float64), 1e-6
    targets = head(features).argmax(dim=1)  # all right, some with p > 1/2
    with torch.no_grad():
        head.weight *= 20 / scale
    loss = FeatureNormLoss(3)
    loss(head(scale * features), targets, features=scale * features)
    entropy = [F.cross_entropy(head(grown * scale * features), targets) for grown in (1, 1 + step)]
    growing = (entropy[0] - entropy[1]).item() / step
    square = (scale * features).square().sum(dim=1).mean().item()
    shrinking = loss.terms["norm_weight"].item() * square * ((1 + step) ** 2 - 1) / step
    assert 0 < shrinking <= 2 * growing * (1 + 1e-3)


def test_auto_leaves_a_model_alone_that_does_not_classify() -> None:
    loss = FeatureNormLoss(3)
    loss(torch.zeros(4, 3), torch.tensor([0, 1, 2, 0]), features=FEATURES)
    assert loss.terms["norm_weight"] == 0


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(ValueError, match="strength must be a finite number >= 0"):
        FeatureNormLoss(3, strength=-1)
    with pytest.raises(ValueError, match="FeatureNormLoss needs features"):
        FeatureNormLoss(3)(LOGITS, TARGETS)
