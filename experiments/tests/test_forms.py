"""Forms of MR² that only the experiments use."""

import pytest
import torch
import torch.nn.functional as F

from classgap.losses import FeatureNormLoss, MR2Loss


def test_the_bound_of_a_penalty_is_proportional_to_its_force(forms) -> None:
    logits, targets = torch.tensor([[3.0, 0.0, -1.0], [0.0, 2.0, 1.0]]), torch.tensor([0, 1])
    features = torch.tensor([[1.0, 2.0], [0.5, -1.0]])
    auto = FeatureNormLoss(3)
    auto(logits, targets, features=features)
    for force in (1.0, 2.0, 8.0):
        penalty = forms.PenaltyLoss(3, force=force)
        penalty(logits, targets, features=features)
        expected = force / 2 * auto.terms["norm_weight"]  # "auto" has 2
        torch.testing.assert_close(penalty.terms["penalty_weight"], expected)
    capped = forms.PenaltyLoss(3, force=8.0, strength=1e-3)
    capped(logits, targets, features=features)
    assert capped.terms["penalty_weight"].item() == pytest.approx(1e-3)


def test_label_smoothing_matches_torch(forms) -> None:
    torch.manual_seed(0)
    logits, features, targets = torch.randn(6, 3), torch.randn(6, 4), torch.tensor([0, 1, 2, 0, 1, 2])
    plain, smoothed = MR2Loss(3), forms.SmoothedMR2Loss(3, smoothing=0.2)
    for loss in (plain, smoothed):
        loss(logits, targets, features=features)
    scaled = logits / plain.margins()[targets][:, None]
    expected = F.cross_entropy(scaled, targets, label_smoothing=0.2)
    torch.testing.assert_close(smoothed.terms["logit"] + 0.2 * smoothed.terms["smooth"], expected)
    torch.testing.assert_close(smoothed.terms["representation_weight"], plain.terms["representation_weight"])
