import pytest
import torch

from classgap.losses import MR2Loss, MR2ReleaseLoss


def test_worked_example_of_the_representation_term() -> None:
    loss = MR2ReleaseLoss(1, strength=1.0)
    value = loss(torch.zeros(2, 1), torch.tensor([0, 0]), features=torch.tensor([[0.0, 0.0], [2.0, 0.0]]))
    assert value.item() == pytest.approx(0.159628, abs=1e-6)


def test_statistic_differs_from_the_papers_unless_p_is_2() -> None:
    """f = {(1,0), (0,1)}: the published sum of two 5-norms is 0.6598, the paper's r² is 1."""
    features = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    release, paper = MR2ReleaseLoss(1), MR2Loss(1, p=5.0)
    for loss in (release, paper):
        loss(torch.zeros(2, 1), torch.tensor([0, 0]), features=features)
    assert (release.mean_norm + release.spread).item() == pytest.approx(0.6598, abs=1e-4)
    assert paper.stats.size.item() == pytest.approx(1.0)


def test_unseen_classes_inflate_the_margins_of_the_seen() -> None:
    """With 2 of 4 classes seen and equal statistics γ is 2, so logits are halved."""
    features, targets = torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 1])
    logits = torch.randn(2, 4)
    value = MR2ReleaseLoss(4, strength=0.0)(logits, targets, features=features)
    torch.testing.assert_close(value, torch.nn.functional.cross_entropy(logits / 2, targets))


def test_the_two_versions_differ_in_the_slack_only() -> None:
    features, targets = torch.randn(6, 3), torch.tensor([0, 0, 0, 1, 1, 1])
    terms = {}
    for source in ("cifar", "imagenet"):
        loss = MR2ReleaseLoss(2, source=source)
        loss(torch.zeros(6, 2), targets, features=features)
        terms[source] = loss.terms
    assert terms["cifar"]["logit"] == terms["imagenet"]["logit"]
    assert terms["cifar"]["representation"] > terms["imagenet"]["representation"]


def test_invalid_source_is_rejected() -> None:
    with pytest.raises(ValueError, match="source must be one of 'cifar', 'imagenet'"):
        MR2ReleaseLoss(3, source="svhn")
