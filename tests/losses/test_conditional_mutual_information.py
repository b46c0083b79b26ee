import pytest
import torch
import torch.nn.functional as F

from classgap.functional import concentration, group_by_class, separation
from classgap.losses import ConditionalMutualInformationLoss

LOGITS, TARGETS = torch.randn(7, 3), torch.tensor([0, 1, 2, 0, 1, 0, -100])


def test_worked_examples() -> None:
    loss = ConditionalMutualInformationLoss(2)
    loss(torch.tensor([[0.8, 0.2], [0.6, 0.4]]).log(), torch.tensor([0, 0]))
    assert loss.terms["concentration"].item() == pytest.approx(0.024157, abs=1e-6)
    assert loss.terms["separation"].item() == 0
    loss(torch.tensor([[0.8, 0.2], [0.3, 0.7]]).log(), torch.tensor([0, 1]))
    assert loss.terms["separation"].item() == pytest.approx(0.557016, abs=1e-6)


def test_without_strengths_it_is_cross_entropy() -> None:
    loss = ConditionalMutualInformationLoss(3, concentrate=0, separate=0)
    torch.testing.assert_close(loss(LOGITS, TARGETS), F.cross_entropy(LOGITS, TARGETS))


def test_centroids_run_and_start_uniform() -> None:
    loss = ConditionalMutualInformationLoss(2, decay=0.75)
    torch.testing.assert_close(loss.centroids(), torch.full((2, 2), 0.5))
    for p in ((0.8, 0.2), (0.4, 0.6)):
        loss(torch.tensor([p]).log(), torch.tensor([1]))
    torch.testing.assert_close(loss.centroids(), torch.tensor([[0.5, 0.5], [0.7, 0.3]]))


def test_separation_reaches_both_sides_of_a_pair() -> None:
    groups = group_by_class(TARGETS.clamp(min=-1), 3)
    logits = LOGITS.double().requires_grad_()
    assert torch.autograd.gradcheck(lambda z: separation(z.log_softmax(dim=1), groups), logits)
    centroids = torch.rand(7, 3, dtype=torch.float64).softmax(dim=1)
    assert torch.autograd.gradcheck(lambda z: concentration(z.log_softmax(dim=1), centroids), logits)


def test_separation_has_a_bound() -> None:
    logits = torch.tensor([[1e4, 0.0], [0.0, 1e4]], requires_grad=True)
    loss = ConditionalMutualInformationLoss(2, separate=1.0, concentrate=0)
    loss(logits, torch.tensor([0, 1])).backward()
    assert loss.terms["separation"].item() == pytest.approx(13.815511 / 2, rel=1e-5)  # -ln 1e-6, in 2 of 4 pairs
    assert not logits.grad.any()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"concentrate": -1}, "concentrate must be a finite number >= 0"),
        ({"separate": -1}, "separate must be a finite number >= 0"),
        ({"decay": 1.0}, r"decay must be in \[0, 1\)"),
    ],
)
def test_invalid_arguments_are_rejected(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ConditionalMutualInformationLoss(3, **settings)
