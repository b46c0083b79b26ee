import pytest
import torch
import torch.nn.functional as F

from classgap.losses import HybridContrastiveLoss


def contrast(loss: HybridContrastiveLoss, logits: list[list[float]], targets: list[int]) -> float:
    loss(torch.tensor(logits), torch.tensor(targets))
    return loss.terms["contrast"].item()


def test_worked_example() -> None:
    assert contrast(HybridContrastiveLoss(2), [[1.0, 0.0], [2.0, 0.0]], [0, 0]) == pytest.approx(0.693147, abs=1e-6)


def test_plain_logits_by_hand() -> None:
    loss = HybridContrastiveLoss(2, normalize=False, temperature=1.0, queue=0)
    value = contrast(loss, [[3.0, 0.0], [1.0, 4.0]], [0, 1])
    leads = torch.tensor(
        [1.0 - 3.0, 0.0 - 4.0]
    )  # z_0 of the second over the first's, z_1 of the first over the second's
    assert value == pytest.approx(torch.log1p(leads.exp()).mean().item())


def test_the_queue_holds_earlier_samples_without_gradient() -> None:
    loss = HybridContrastiveLoss(2, queue=3)
    assert contrast(loss, [[1.0, 0.0]], [0]) == 0.0
    for others in (1, 2, 3, 3):  # equal scores: ln(1 + their number)
        value = contrast(loss, [[1.0, 0.0]], [0])
        assert value == pytest.approx(torch.log(torch.tensor(1.0 + others)).item())
    assert not loss.queue.features.requires_grad


def test_no_strength_is_cross_entropy_without_a_queue() -> None:
    loss = HybridContrastiveLoss(3, strength=0)
    logits, targets = torch.randn(5, 3), torch.tensor([0, 1, 2, 0, 1])
    torch.testing.assert_close(loss(logits, targets), F.cross_entropy(logits, targets))
    assert not loss.state_dict()


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(ValueError, match="queue must be an integer >= 0"):
        HybridContrastiveLoss(3, queue=-1)
    with pytest.raises(ValueError, match="temperature must be a finite number > 0"):
        HybridContrastiveLoss(3, temperature=-1.0)
