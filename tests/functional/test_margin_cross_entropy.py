import sys

import pytest
import torch
import torch.nn.functional as F

from classgap.functional import growing_force, margin_cross_entropy


@pytest.fixture(params=["few logits", "many logits"], autouse=True)
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few and many logits go through different code, which must give the same."""
    if request.param == "many logits":
        monkeypatch.setattr(sys.modules["classgap.functional.margin_cross_entropy"], "PLAIN_ELEMENTS", -1)


def test_values_of_the_worked_example() -> None:
    logits = torch.tensor([[2.0, 0.0], [2.0, 0.0]])
    values = margin_cross_entropy(logits, torch.tensor([0, 1]), gamma_B=torch.tensor([4 / 3, 2 / 3]))
    torch.testing.assert_close(values, torch.tensor([0.201413, 3.048587]), atol=1e-6, rtol=0)


def test_without_margins_it_is_cross_entropy() -> None:
    value = margin_cross_entropy(torch.tensor([[2.0, 0.0, -1.0]]), torch.tensor([0]))
    assert value.item() == pytest.approx(0.169846, abs=1e-6)
    logits, labels = torch.randn(5, 4), torch.randint(4, (5,))
    expected = F.cross_entropy(logits, labels, reduction="none")
    torch.testing.assert_close(margin_cross_entropy(logits, labels), expected)
    torch.testing.assert_close(margin_cross_entropy(logits, labels, torch.ones(5)), expected)


def test_priors_shift_the_logits_before_the_margin_divides_them() -> None:
    log_prior = torch.tensor([0.9, 0.1]).log()
    values = margin_cross_entropy(torch.zeros(2, 2), torch.tensor([1, 0]), log_prior_K=log_prior)
    torch.testing.assert_close(values, torch.tensor([2.302585, 0.105361]), atol=1e-6, rtol=0)
    logits, labels, gamma = torch.randn(3, 2), torch.tensor([0, 1, 1]), torch.tensor([0.5, 1.0, 2.0])
    expected = F.cross_entropy((logits + log_prior) / gamma[:, None], labels, reduction="none")
    torch.testing.assert_close(margin_cross_entropy(logits, labels, gamma, log_prior), expected)


def test_gradient_is_exact_and_does_not_reach_the_margin() -> None:
    logits = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    gamma = torch.rand(4, dtype=torch.float64).add(0.5).requires_grad_()
    labels = torch.tensor([0, 2, -1, 1])
    assert torch.autograd.gradcheck(lambda z: margin_cross_entropy(z, labels, gamma), (logits,))
    margin_cross_entropy(logits, labels, gamma).sum().backward()
    assert gamma.grad is None
    assert not logits.grad[2].any()


def test_samples_without_a_class_give_zero() -> None:
    for gamma in (None, torch.full((2,), 2.0)):
        values = margin_cross_entropy(torch.randn(2, 3), torch.tensor([-1, 1]), gamma)
        assert values[0] == 0
        assert values[1] > 0


def test_huge_logits_stay_finite() -> None:
    logits = torch.tensor([[1e4, -1e4], [-1e4, 1e4]], requires_grad=True)
    values = margin_cross_entropy(logits, torch.tensor([0, 0]), torch.tensor([0.01, 0.01]))
    assert values.tolist() == [0.0, 2e6]
    values.sum().backward()
    assert logits.grad.isfinite().all()


def test_growing_force_is_exact_for_two_classes_and_a_lower_bound_for_more() -> None:
    for classes in (2, 7):
        logits, labels, step = 3 * torch.randn(50, classes, dtype=torch.float64), torch.randint(classes, (50,)), 1e-6
        larger, smaller = (margin_cross_entropy(logits * (1 + sign * step), labels) for sign in (1, -1))
        true_force = (smaller - larger) / (2 * step)
        force = growing_force(margin_cross_entropy(logits, labels))
        if classes == 2:
            torch.testing.assert_close(force, true_force, rtol=1e-6, atol=1e-8)
        else:
            assert (force <= true_force + 1e-8).all()
            assert (force < true_force - 1e-3).any()


def test_growing_force_is_finite_at_both_ends() -> None:
    assert growing_force(torch.tensor([0.0, 1e-12, 1e4])).tolist() == pytest.approx([0.0, 2.763e-11, -1e4], rel=1e-3)


@pytest.mark.parametrize("scale", [1.0, 1e4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_are_those_of_scaled_cross_entropy(scale: float, dtype: torch.dtype) -> None:
    logits = (scale * torch.randn(6, 4, dtype=dtype)).requires_grad_()
    labels, gamma = torch.tensor([0, 3, 1, -1, 2, 0]), torch.rand(6, dtype=dtype) + 0.5
    weights = torch.randn(6, dtype=dtype)
    ours = margin_cross_entropy(logits, labels, gamma)
    theirs = F.cross_entropy(logits / gamma[:, None], labels, reduction="none", ignore_index=-1)
    torch.testing.assert_close(ours, theirs)
    gradients = [torch.autograd.grad(value @ weights, logits)[0] for value in (ours, theirs)]
    torch.testing.assert_close(*gradients)
