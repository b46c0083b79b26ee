import warnings

import pytest
import torch
from torch import nn

from classgap.losses import LargeMarginDiscriminativeLoss


def two_sided_head() -> nn.Linear:
    head = nn.Linear(2, 2, bias=False)
    head.weight.data = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    return head


@pytest.mark.parametrize(("distance", "expected"), [(6.0, 3.0), (1.5, 0.0)])
def test_worked_example_of_the_margin(distance: float, expected: float) -> None:
    head = two_sided_head()
    loss = LargeMarginDiscriminativeLoss(2, 2, distance=distance)
    features = torch.tensor([[3.0, 0.0]])
    loss(head(features), torch.tensor([0]), features=features, head=head)
    assert loss.terms["separate"].item() == expected
    assert loss.terms["shrink"].item() == 3.0


def test_worked_example_of_the_ball() -> None:
    loss = LargeMarginDiscriminativeLoss(2, 2, centroids="none")
    features = torch.tensor([[-1.5, 0.0], [1.5, 0.0]])  # 1.5 from their mean, with a radius of 0.5
    loss(torch.zeros(2, 2), torch.tensor([0, 0]), features=features, head=two_sided_head())
    assert loss.terms["compact"].item() == 1.0


def gradient_of_the_margin(centroids: str, momentum: float) -> torch.Tensor:
    head = two_sided_head()
    loss = LargeMarginDiscriminativeLoss(
        2, 2, centroids=centroids, momentum=momentum, compact=0.0, shrink=0.0, distance=50.0
    )
    seen = torch.tensor([[3.0, 1.0], [-2.0, 0.0]])
    loss(torch.zeros(2, 2), torch.tensor([0, 1]), features=seen, head=head)
    features = torch.tensor([[3.1, 1.0], [-2.5, 0.3]], requires_grad=True)
    loss(torch.zeros(2, 2), torch.tensor([0, 1]), features=features, head=head).backward()
    return features.grad


def test_momentum_on_both_shrinks_the_margins_gradient() -> None:
    """Proposition 4.3: by the factor 1 - momentum; "partial" keeps all of it."""
    naive = gradient_of_the_margin("none", 0.9)
    torch.testing.assert_close(gradient_of_the_margin("both", 0.9), 0.1 * naive)
    torch.testing.assert_close(gradient_of_the_margin("partial", 0.9), naive)


def test_the_head_learns_from_the_margin_and_is_not_adopted() -> None:
    head = nn.Linear(3, 4)
    loss = LargeMarginDiscriminativeLoss(4, 3)
    features = torch.randn(8, 3)
    loss(torch.zeros(8, 4), torch.arange(8) % 4, features=features, head=head).backward()
    assert head.weight.grad.any()
    assert not list(loss.parameters())


def test_zero_weights_leave_cross_entropy() -> None:
    loss = LargeMarginDiscriminativeLoss(3, 2, compact=0.0, separate=0.0, shrink=0.0)
    logits, targets = torch.randn(5, 3), torch.tensor([0, 1, 2, 0, 1])
    value = loss(logits, targets, features=torch.randn(5, 2), head=nn.Linear(2, 3))
    torch.testing.assert_close(value, nn.functional.cross_entropy(logits, targets))
    assert list(loss.terms) == ["cross_entropy"]


@pytest.mark.parametrize(("distance", "part"), [(0.5, "part 1"), (0.9, "part 2"), (1.0, "part 2")])
def test_a_small_distance_warns_about_lost_guarantees(distance: float, part: str) -> None:
    with pytest.warns(UserWarning, match=f"Proposition 4.2, {part}"):
        LargeMarginDiscriminativeLoss(3, 2, radius=0.5, distance=distance)


def test_a_large_distance_is_quiet() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LargeMarginDiscriminativeLoss(3, 2, radius=0.5, distance=1.01)


def test_wrong_width_names_both_numbers() -> None:
    loss = LargeMarginDiscriminativeLoss(3, 2)
    with pytest.raises(ValueError, match=r"features must have 2 columns.*got 4"):
        loss(torch.zeros(2, 3), torch.tensor([0, 1]), features=torch.zeros(2, 4), head=nn.Linear(4, 3))
