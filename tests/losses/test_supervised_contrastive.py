import math

import pytest
import torch
import torch.nn.functional as F

from classgap.losses import SupervisedContrastiveLoss


def contrast(features: torch.Tensor, targets: list[int], **settings) -> float:
    loss = SupervisedContrastiveLoss(3, cross_entropy=0.0, temperature=1.0, **settings)
    return loss(torch.zeros(len(targets), 3), torch.tensor(targets), features=features).item()


def test_worked_examples() -> None:
    features = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    assert contrast(features, [0, 0, 1, 1]) == pytest.approx(0.551445, abs=1e-6)
    assert contrast(features[:2], [0, 0]) == pytest.approx(0.0, abs=1e-6)


def test_lengths_do_not_matter() -> None:
    features, lengths = torch.randn(6, 4), torch.rand(6, 1) + 0.5
    assert contrast(features, [0, 0, 1, 1, 2, 2]) == pytest.approx(contrast(features * lengths, [0, 0, 1, 1, 2, 2]))


def test_samples_without_a_positive_are_zero_and_counted() -> None:
    loss = SupervisedContrastiveLoss(3, reduction="none", cross_entropy=0.0)
    features = torch.randn(4, 5, requires_grad=True)
    each = loss(torch.zeros(4, 3), torch.tensor([0, 0, 1, -100]), features=features)
    assert each[2] == 0
    assert each[:2].all()
    assert loss.terms["without_positive"].item() == pytest.approx(1 / 3)
    each[2].backward()
    assert not features.grad.any()


def test_two_views_are_a_batch_of_twice_the_size() -> None:
    views, targets = torch.randn(2, 3, 4), torch.tensor([0, 1, 2])
    loss = SupervisedContrastiveLoss(3, cross_entropy=0.0)
    value = loss(torch.zeros(6, 3), torch.cat([targets, targets]), features=torch.cat([views[0], views[1]]))
    assert loss.terms["without_positive"] == 0
    unit = F.normalize(views.flatten(0, 1), dim=1).tolist()
    total = 0.0
    for i in range(6):
        scores = [sum(a * b for a, b in zip(unit[i], unit[j], strict=True)) / 0.1 for j in range(6)]
        total -= scores[(i + 3) % 6] - math.log(sum(math.exp(s) for j, s in enumerate(scores) if j != i))
    assert value.item() == pytest.approx(total / 6, rel=1e-5)


def test_no_strength_is_cross_entropy_without_features() -> None:
    logits, targets = torch.randn(5, 3), torch.tensor([0, 1, 2, 0, 1])
    value = SupervisedContrastiveLoss(3, strength=0)(logits, targets)
    torch.testing.assert_close(value, F.cross_entropy(logits, targets))


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(ValueError, match="temperature must be a finite number > 0"):
        SupervisedContrastiveLoss(3, temperature=0.0)
    with pytest.raises(ValueError, match="strength and cross_entropy must not both be 0"):
        SupervisedContrastiveLoss(3, strength=0.0, cross_entropy=0.0)
