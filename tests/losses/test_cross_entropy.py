import pytest
import torch
import torch.nn.functional as F

from classgap.losses import CrossEntropyLoss

LOGITS = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
TARGETS = torch.tensor([0, 1, 2, 0, -100, 1])


def test_worked_example() -> None:
    value = CrossEntropyLoss(3)(torch.tensor([[2.0, 0.0, -1.0]]), torch.tensor([0]))
    assert value.item() == pytest.approx(0.169846, abs=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weights", [None, [0.2, 1.0, 3.0]])
def test_class_indices_match_pytorch(smoothing: float, weights) -> None:
    value = CrossEntropyLoss(3, label_smoothing=smoothing, weight=weights)(LOGITS, TARGETS)
    weight = None if weights is None else torch.tensor(weights)
    torch.testing.assert_close(value, F.cross_entropy(LOGITS, TARGETS, weight=weight, label_smoothing=smoothing))


def test_mixup_is_the_mixture_of_two_losses() -> None:
    a, b, share = torch.tensor([0, 1, 2, 0, 1, 2]), torch.tensor([1, 1, 0, 2, 0, 2]), 0.3
    mixed = share * F.one_hot(a, 3).float() + (1 - share) * F.one_hot(b, 3).float()
    expected = share * F.cross_entropy(LOGITS, a) + (1 - share) * F.cross_entropy(LOGITS, b)
    torch.testing.assert_close(CrossEntropyLoss(3)(LOGITS, mixed), expected)


def test_soft_targets_are_smoothed_and_weighted_too() -> None:
    soft, weights = LOGITS.flip(0).softmax(dim=1), [0.2, 1.0, 3.0]
    value = CrossEntropyLoss(3, label_smoothing=0.1, weight=weights)(LOGITS, soft)
    log_p, total, weight_sum = LOGITS.log_softmax(dim=1).tolist(), 0.0, 0.0
    for row, targets in zip(log_p, soft.tolist(), strict=True):
        for k, w in enumerate(weights):
            total -= (0.9 * targets[k] + 0.1 / 3) * w * row[k]
            weight_sum += targets[k] * w
    assert value.item() == pytest.approx(total / weight_sum, rel=1e-5)


def test_reweight_takes_effect_at_once_and_survives_a_checkpoint() -> None:
    loss = CrossEntropyLoss(3)
    loss.reweight([0.0, 1.0, 0.0])
    restored = CrossEntropyLoss(3)
    restored.load_state_dict(loss.state_dict())
    expected = F.cross_entropy(LOGITS[[1, 5]], TARGETS[[1, 5]])
    torch.testing.assert_close(restored(LOGITS, TARGETS), expected)


def test_a_batch_whose_classes_have_no_weight_is_worth_nothing() -> None:
    loss = CrossEntropyLoss(3, weight=[0.0, 0.0, 1.0])
    assert loss(LOGITS[:2].requires_grad_(), torch.tensor([0, 1])).item() == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"label_smoothing": 1.0}, r"label_smoothing must be in \[0, 1\)"),
        ({"weight": [1.0, 2.0]}, "weight must be 3 numbers"),
    ],
)
def test_invalid_arguments_are_rejected(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CrossEntropyLoss(3, **settings)
