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


def test_the_compiled_version_has_the_statistics_of_the_paper() -> None:
    """With p = 2 the published sum of two norms is the paper's r², so both have the same γ with plain spreads."""
    features, targets, logits = torch.randn(12, 3), torch.arange(12) % 4, torch.randn(12, 4)
    release, paper = MR2ReleaseLoss(4, source="compiled"), MR2Loss(4, margin=1.0, spread="plain", strength=0.0)
    for loss in (release, paper):
        loss(logits, targets, features=features)
    torch.testing.assert_close(release.terms["logit"], paper.terms["logit"])


@pytest.mark.parametrize("deviation", [0.1, 1.0])
@pytest.mark.parametrize(("source", "about"), [("cifar", 300), ("imagenet", 300), ("compiled", 30)])
def test_the_published_pull_is_weaker_than_the_printed_one(source: str, about: float, deviation: float) -> None:
    """Gradient of the pull at equal λ, 100 classes, a batch of 128 and 64 features: printed divided by published."""
    generator = torch.Generator().manual_seed(0)
    targets = torch.randint(100, (128,), generator=generator)
    centers = torch.randn(100, 64, generator=generator)
    features = centers[targets] + deviation * torch.randn(128, 64, generator=generator)
    norms = []
    for loss in (
        MR2Loss(100, strength=1.0, spread="plain", logit="none"),
        MR2ReleaseLoss(100, strength=1.0, source=source),
    ):
        inputs = features.clone().requires_grad_()
        # The logits do not depend on the features here, so this is the gradient of the pull alone.
        loss(torch.zeros(128, 100), targets, features=inputs).backward()
        norms.append(inputs.grad.norm().item())
    assert about / 2 < norms[0] / norms[1] < 2 * about


def test_invalid_source_is_rejected() -> None:
    with pytest.raises(ValueError, match="source must be one of 'cifar', 'imagenet', 'compiled'"):
        MR2ReleaseLoss(3, source="svhn")
