import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Independent, Normal

from classgap import FeatureTap
from classgap.losses import GaussianMixtureHead, GaussianMixtureLoss, LargeMarginDiscriminativeLoss


def head_at(*means: float) -> GaussianMixtureHead:
    head = GaussianMixtureHead(1, len(means))
    head.weight.data = torch.tensor(means)[:, None]
    return head


@pytest.mark.parametrize(("feature", "classification", "likelihood"), [(0.0, 0.126928, 0.0), (1.0, 0.974077, 0.5)])
def test_worked_examples(feature: float, classification: float, likelihood: float) -> None:
    head, loss = head_at(0.0, 2.0), GaussianMixtureLoss(2, margin=1.0)
    loss(head(torch.tensor([[feature]])), torch.tensor([0]), head=head)
    assert loss.terms["classification"].item() == pytest.approx(classification, abs=1e-6)
    assert loss.terms["likelihood"].item() == pytest.approx(likelihood)


def test_without_margin_and_likelihood_it_is_cross_entropy_of_the_distances() -> None:
    head, features, targets = GaussianMixtureHead(4, 3), torch.randn(6, 4), torch.tensor([0, 1, 2, 0, 1, 2])
    distances = (features[:, None] - head.weight).square().sum(dim=2) / 2
    value = GaussianMixtureLoss(3, margin=0.0, strength=0.0)(head(features), targets, head=head)
    torch.testing.assert_close(value, F.cross_entropy(-distances, targets))


def test_the_margin_is_for_training_only_and_may_be_set() -> None:
    head, loss = head_at(0.0, 2.0), GaussianMixtureLoss(2, margin=0.0)
    logits, targets = head(torch.tensor([[1.0]])), torch.tensor([0])
    plain = loss(logits, targets, head=head)
    loss.margin = 0.3
    assert loss(logits, targets, head=head) > plain
    assert loss.eval()(logits, targets, head=head) == plain


def test_learned_variances_give_log_likelihoods() -> None:
    head = GaussianMixtureHead(4, 3, variances="learned")
    nn.init.normal_(head.log_variance)
    features = torch.randn(6, 4)
    expected = Independent(Normal(head.weight, (head.log_variance / 2).exp()), 1).log_prob(features[:, None])
    constant = 2 * torch.log(torch.tensor(2 * torch.pi))  # D/2 ln 2π
    torch.testing.assert_close(head(features), expected + constant)


def test_without_the_determinant_only_distances_remain() -> None:
    head = GaussianMixtureHead(2, 1, variances="learned", log_determinant=False)
    head.weight.data.zero_()
    head.log_variance.data = torch.tensor([[0.0, 4.0]]).log().clamp(min=0)  # variances 1 and 4
    torch.testing.assert_close(head(torch.tensor([[1.0, 2.0]])), torch.tensor([[-(1 / 1 + 4 / 4) / 2]]))
    assert head.bias is None


def test_distances_far_from_the_origin_keep_their_digits() -> None:
    head = head_at(1000.0, 1001.0)
    torch.testing.assert_close(head(torch.tensor([[1000.25]])), torch.tensor([[-(0.25**2) / 2, -(0.75**2) / 2]]))


def test_the_head_is_found_trained_and_evaluated_like_any_other() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), GaussianMixtureHead(4, 2))
    tap, loss = FeatureTap(model), GaussianMixtureLoss(2)
    logits = model(torch.randn(5, 3))
    assert tap.head is model[2]
    loss(logits, torch.tensor([0, 1, 0, 1, 1]), features=tap.features, head=tap.head).backward()
    assert model[0].weight.grad.any()
    assert model[2].weight.grad.any()
    assert not list(loss.parameters())


def test_the_head_computes_in_float32_under_autocast_and_in_half_precision() -> None:
    head, features = GaussianMixtureHead(4, 3), torch.randn(6, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(head(features), head(features.float()), rtol=0, atol=0)
    assert head.half()(features.half()).dtype == torch.float32


def test_another_head_is_rejected() -> None:
    message = r"head must be .*Head\(4, 3\).*got Linear"
    with pytest.raises(ValueError, match=message):
        GaussianMixtureLoss(3)(torch.zeros(2, 3), torch.tensor([0, 1]), head=nn.Linear(4, 3))
    with pytest.raises(ValueError, match=r"head must be .*got GaussianMixtureHead"):
        LargeMarginDiscriminativeLoss(3, 4)(
            torch.zeros(2, 3), torch.tensor([0, 1]), features=torch.zeros(2, 4), head=GaussianMixtureHead(4, 3)
        )


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(ValueError, match="variances must be one of 'unit', 'learned'"):
        GaussianMixtureHead(4, 3, variances="full")
    with pytest.raises(ValueError, match="margin must be a finite number >= 0"):
        GaussianMixtureLoss(3, margin=-0.1)
