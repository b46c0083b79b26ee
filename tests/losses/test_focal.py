import pytest
import torch
import torch.nn.functional as F

from classgap.functional import sigmoid_focal, softmax_focal
from classgap.losses import ClassBalancedFocalLoss, FocalLoss

LOGITS, TARGETS = torch.randn(5, 3), torch.tensor([0, 1, 2, 0, -1])


@pytest.mark.parametrize(
    ("form", "gamma", "expected"),
    [("sigmoid", 0.0, 1.386294), ("sigmoid", 1.0, 0.693147), ("softmax", 0.0, 0.693147), ("softmax", 2.0, 0.173287)],
)
def test_worked_examples(form: str, gamma: float, expected: float) -> None:
    value = FocalLoss(2, gamma=gamma, form=form)(torch.zeros(3, 2), torch.tensor([0, 1, 1]))
    assert value.item() == pytest.approx(expected, abs=1e-6)


def test_without_gamma_the_forms_are_cross_entropy_and_binary_cross_entropy() -> None:
    softmax, sigmoid = softmax_focal(LOGITS, TARGETS, 0.0), sigmoid_focal(LOGITS, TARGETS, 0.0)
    torch.testing.assert_close(softmax, F.cross_entropy(LOGITS, TARGETS, reduction="none", ignore_index=-1))
    wanted = F.one_hot(TARGETS.clamp(min=0), 3).float()
    binary = F.binary_cross_entropy_with_logits(LOGITS, wanted, reduction="none").sum(dim=1) * (TARGETS >= 0)
    torch.testing.assert_close(sigmoid, binary)


@pytest.mark.parametrize("function", [softmax_focal, sigmoid_focal])
@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0, 2.0])
def test_gradients(function, gamma: float) -> None:
    logits = LOGITS.double().requires_grad_()
    assert torch.autograd.gradcheck(lambda z: function(z, TARGETS, gamma), logits)


@pytest.mark.parametrize("function", [softmax_focal, sigmoid_focal])
@pytest.mark.parametrize("gamma", [0.0, 0.5, 2.0])
def test_certain_outputs_have_finite_gradients(function, gamma: float) -> None:
    logits = torch.tensor([[1e4, -1e4], [200.0, 0.0], [-1e4, 1e4]], requires_grad=True)
    terms = function(logits, torch.tensor([0, 0, 0]), gamma)
    terms.sum().backward()
    assert terms.isfinite().all()
    assert logits.grad.isfinite().all()
    assert terms[0] == 0
    assert terms[2] >= 1e4


def test_class_balance_weighs_by_the_effective_number() -> None:
    loss = ClassBalancedFocalLoss([100, 10], gamma=0.0)
    torch.testing.assert_close(loss.weight, torch.tensor([0.182563, 1.817437]), rtol=1e-5, atol=1e-6)
    value = loss(torch.zeros(1, 2), torch.tensor([1]))
    assert value.item() == pytest.approx(1.817437 * 1.386294, rel=1e-5)  # over samples, not over weights


def test_without_beta_class_balance_is_the_focal_loss() -> None:
    targets = TARGETS.clamp(min=0)
    balanced = ClassBalancedFocalLoss([50, 5, 1], beta=0, gamma=2.0, form="softmax")
    torch.testing.assert_close(balanced(LOGITS, targets), FocalLoss(3)(LOGITS, targets))


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(ValueError, match="gamma must be a finite number >= 0"):
        FocalLoss(3, gamma=-1)
    with pytest.raises(ValueError, match=r"form must be one of .*got 'hinge'"):
        FocalLoss(3, form="hinge")
    with pytest.raises(ValueError, match=r"beta must be in \[0, 1\)"):
        ClassBalancedFocalLoss([1, 2], beta=1.0)
