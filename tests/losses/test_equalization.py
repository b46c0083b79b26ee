import math

import pytest
import torch
import torch.nn.functional as F

from classgap.functional import equalization_cross_entropy
from classgap.losses import EqualizationLoss

COUNTS = [500, 499, 1]
LOGITS, TARGETS = torch.randn(6, 3), torch.tensor([0, 1, 2, 0, 1, 2])


def test_worked_example() -> None:
    dropped = torch.tensor([[False, False, True]])
    value = equalization_cross_entropy(torch.zeros(1, 3), torch.tensor([0]), dropped)
    assert value.item() == pytest.approx(math.log(2), abs=1e-6)


def test_the_true_class_is_never_dropped() -> None:
    every = torch.ones(6, 3, dtype=torch.bool)
    assert not equalization_cross_entropy(LOGITS, TARGETS, every).any()  # alone in its own denominator


def test_a_sample_without_a_class_has_no_gradient() -> None:
    logits = LOGITS.clone().requires_grad_()
    labels = torch.tensor([-1, 1, 2, -1, 1, 2])
    equalization_cross_entropy(logits, labels, torch.ones(6, 3, dtype=torch.bool)).sum().backward()
    assert not logits.grad[[0, 3]].any()
    assert logits.grad.isfinite().all()


@pytest.mark.parametrize(
    "loss",
    [
        EqualizationLoss(COUNTS, drop=0.0),
        EqualizationLoss(COUNTS, threshold=0.001, drop=1.0),  # a share of the threshold itself is not below it
        EqualizationLoss([10, 10, 10], threshold=1 / 3, drop=1.0),
        EqualizationLoss(COUNTS, drop=1.0).eval(),
    ],
)
def test_without_a_rare_class_or_a_draw_it_is_cross_entropy(loss: EqualizationLoss) -> None:
    torch.testing.assert_close(loss(LOGITS, TARGETS), F.cross_entropy(LOGITS, TARGETS))


def test_rare_classes_are_dropped_as_often_as_asked() -> None:
    torch.manual_seed(0)
    samples = 4000
    terms = EqualizationLoss(COUNTS, drop=0.9, reduction="none")(torch.zeros(samples, 3), torch.zeros(samples).long())
    kept, dropped = (terms - math.log(3)).abs() < 1e-5, (terms - math.log(2)).abs() < 1e-5
    assert (kept | dropped).all()
    deviation = math.sqrt(0.9 * 0.1 / samples)
    assert abs(dropped.float().mean().item() - 0.9) < 5 * deviation


def test_evaluation_draws_no_random_numbers() -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    EqualizationLoss(COUNTS).eval()(LOGITS, TARGETS)
    assert torch.equal(torch.get_rng_state(), before)
    assert EqualizationLoss(COUNTS).stochastic


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(ValueError, match=r"drop must be in \[0, 1\], got 1\.5"):
        EqualizationLoss(COUNTS, drop=1.5)
    with pytest.raises(ValueError, match="threshold must be a finite number >= 0"):
        EqualizationLoss(COUNTS, threshold=-0.1)
