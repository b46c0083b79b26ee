import pytest
import torch
import torch.nn.functional as F

from classgap.functional import effective_number_weights, label_margins
from classgap.losses import LDAMLoss

COSINES, TARGETS = torch.rand(5, 3) * 2 - 1, torch.tensor([0, 1, 2, 0, 1])
COUNTS = [100, 10, 1]


def test_worked_examples() -> None:
    torch.testing.assert_close(label_margins(torch.tensor([16.0, 1.0])), torch.tensor([0.25, 0.5]))
    value = LDAMLoss([16, 1], scale=1.0)(torch.tensor([[1.0, 0.0]]), torch.tensor([0]))
    assert value.item() == pytest.approx(0.386871, abs=1e-6)


def test_without_margin_and_scale_it_is_cross_entropy() -> None:
    loss = LDAMLoss(COUNTS, margin=0, scale=1)
    torch.testing.assert_close(loss(COSINES, TARGETS), F.cross_entropy(COSINES, TARGETS))


def test_balanced_classes_have_the_largest_margin_not_none() -> None:
    loss = LDAMLoss([7, 7, 7], scale=1)
    torch.testing.assert_close(loss.margins, torch.full((3,), 0.5))
    assert loss(COSINES, TARGETS) > F.cross_entropy(COSINES, TARGETS)


def test_deferred_weights_make_a_weighted_mean() -> None:
    loss = LDAMLoss(COUNTS)
    before = loss(COSINES, TARGETS)
    weights = effective_number_weights(torch.tensor(COUNTS, dtype=torch.float64))
    loss.reweight(weights)
    margins = loss.margins[TARGETS, None] * F.one_hot(TARGETS, 3)
    expected = F.cross_entropy(30 * (COSINES - margins), TARGETS, weight=weights.float())
    torch.testing.assert_close(loss(COSINES, TARGETS), expected)
    assert before != expected


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"margin": -0.1}, "margin must be a finite number >= 0"),
        ({"scale": 0}, "scale must be a finite number > 0"),
        ({"weight": [1, 2]}, "weight must be 3 numbers"),
    ],
)
def test_invalid_arguments_are_rejected(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LDAMLoss(COUNTS, **settings)
