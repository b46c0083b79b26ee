"""Properties of MR² beyond the comparison with the slow reference in the conformance suite."""

import pytest
import torch
import torch.nn.functional as F

from classgap.losses import MR2Loss

LOGITS = torch.tensor([[2.0, 0.0], [2.0, 0.0]])
TARGETS = torch.tensor([0, 1])


def features_with_sizes(*sizes: float) -> torch.Tensor:
    return torch.tensor([[size**0.5, 0.0] for size in sizes])


def test_worked_example_of_the_logit_margin() -> None:
    loss = MR2Loss(2, strength=0, reduction="none")
    values = loss(LOGITS, TARGETS, features=features_with_sizes(8.0, 1.0))
    torch.testing.assert_close(loss.margins(), torch.tensor([4 / 3, 2 / 3]))
    torch.testing.assert_close(values, torch.tensor([0.201413, 3.048587]), atol=1e-6, rtol=0)


@pytest.mark.parametrize(("slack", "expected"), [(0.0, 4.018150), (2.0, 2.126928)])
def test_worked_example_of_the_representation_margin(slack: float, expected: float) -> None:
    loss = MR2Loss(1, strength=1.0, slack=slack)
    value = loss(torch.zeros(2, 1), torch.tensor([0, 0]), features=torch.tensor([[0.0, 0.0], [2.0, 0.0]]))
    assert value.item() == pytest.approx(expected, abs=1e-6)


def test_slack_is_twice_the_mean_spread() -> None:
    """Two points two apart: the unbiased spread is 2 and the plain one 1."""
    features = torch.tensor([[0.0, 0.0], [2.0, 0.0]])
    for spread, expected in (("plain", 2.126928), ("unbiased", 0.693147)):
        loss = MR2Loss(1, strength=1.0, spread=spread)
        value = loss(torch.zeros(2, 1), torch.tensor([0, 0]), features=features)
        assert value.item() == pytest.approx(expected, abs=1e-6)


def test_equal_classes_without_pull_are_cross_entropy() -> None:
    logits, features = torch.randn(6, 3), F.normalize(torch.randn(6, 4)) * 3
    targets = torch.tensor([0, 1, 2, 0, 1, 2])
    value = MR2Loss(3, strength=0)(logits, targets, features=features)
    torch.testing.assert_close(value, F.cross_entropy(logits, targets))


def test_no_repeated_label_means_no_pull() -> None:
    loss = MR2Loss(3, strength=1.0)
    loss(torch.randn(3, 3), torch.tensor([0, 1, 2]), features=torch.randn(3, 4))
    assert loss.terms["representation"] == 0


def test_unit_features_get_equal_margins_by_the_2_norm_but_not_by_the_3_norm() -> None:
    """The paper's reason for p = 3 with cosine classifiers."""
    features = torch.tensor([[1.0, 0.0], [1.0, 1.0]])
    margins = {}
    for norm in (2.0, 3.0):
        loss = MR2Loss(2, strength=0, normalize=True, p=norm)
        loss(LOGITS, TARGETS, features=features)
        margins[norm] = loss.margins()
    torch.testing.assert_close(margins[2.0], torch.ones(2))
    assert margins[3.0][0] > 1.05 * margins[3.0][1]


def test_it_needs_features_only_where_the_form_uses_them() -> None:
    assert MR2Loss(3).required_inputs == {"features"}
    assert MR2Loss(3, strength=0).required_inputs == {"features"}
    assert MR2Loss(3, logit="uniform", strength=0).required_inputs == frozenset()
    value = MR2Loss(2, logit="uniform", margin=2.0, strength=0)(LOGITS, TARGETS)
    torch.testing.assert_close(value, F.cross_entropy(LOGITS / 2, TARGETS))


def test_no_gradient_flows_through_the_statistics() -> None:
    """With the pull off, features only set γ, and must not feel it."""
    features = features_with_sizes(8.0, 1.0).requires_grad_()
    logits = LOGITS.clone().requires_grad_()
    MR2Loss(2, strength=0)(logits, TARGETS, features=features).backward()
    assert features.grad is None
    assert logits.grad.any()


TARGETS_4 = torch.tensor([0, 0, 1, 1])


def auto_strength(confidence: float, features: torch.Tensor) -> float:
    """λ in a batch of two classes whose true class has this probability everywhere."""
    lead = torch.tensor(confidence).logit()
    logits = lead * F.one_hot(TARGETS_4, 2)
    loss = MR2Loss(2, logit="none")
    loss(logits, TARGETS_4, features=features)
    return loss.terms["representation_weight"].item()


def test_auto_leaves_a_model_alone_that_does_not_classify() -> None:
    features = torch.randn(4, 3)
    assert auto_strength(0.3, features) == 0
    assert auto_strength(0.5, features) == pytest.approx(0, abs=1e-6)
    assert auto_strength(0.8, 0.1 * features) == pytest.approx(0.1)


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0, 1000.0])
@pytest.mark.parametrize("confidence", [0.6, 0.9, 0.999])
def test_auto_never_shrinks_features_much_faster_than_cross_entropy_grows_them(scale: float, confidence: float) -> None:
    """Both forces by brute force: the losses of features that are a little larger, through a linear head."""
    torch.manual_seed(1)
    features, step = scale * torch.randn(4, 3, dtype=torch.float64), 1e-6
    strength = auto_strength(confidence, features)
    logits = torch.tensor(confidence, dtype=torch.float64).logit() * F.one_hot(TARGETS_4, 2)
    growing = (F.cross_entropy(logits, TARGETS_4) - F.cross_entropy(logits * (1 + step), TARGETS_4)) / step
    pull = MR2Loss(2, strength=1.0)
    pull(logits, TARGETS_4, features=features)
    with pull.frozen():
        before = pull(logits, TARGETS_4, features=features) - pull.terms["logit"]
        after = pull(logits, TARGETS_4, features=features * (1 + step)) - pull.terms["logit"]
    shrinking = strength * (after - before) / step
    assert shrinking <= 2 * growing * (1 + 1e-3)
    if strength < 0.1:
        assert shrinking == pytest.approx(2 * growing.item(), rel=1e-3)


def test_a_fixed_strength_collapses_features_that_auto_does_not() -> None:
    """Large features under a head that fits them: the printed λ merges the classes within a few steps."""
    final = {}
    for strength in (0.5, "auto"):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(5, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
        model[0].weight.data *= 20
        x = torch.randn(60, 5) + 3 * F.one_hot(torch.arange(60) % 3, 5)
        y = torch.arange(60) % 3
        loss, optimizer = MR2Loss(3, strength=strength), torch.optim.SGD(model.parameters(), lr=0.05)
        for _ in range(100):
            features = model[:2](x)
            optimizer.zero_grad()
            loss(model[2](features), y, features=features).backward()
            optimizer.step()
        final[strength] = (model(x).argmax(dim=1) == y).double().mean().item()
    assert final["auto"] > 0.9
    assert final[0.5] < 0.7


def test_the_bank_supplies_positives_that_the_batch_lacks() -> None:
    features = torch.tensor([[0.0], [2.0]])
    loss = MR2Loss(1, strength=1.0, slack=1.0, memory_size=4)
    loss(torch.zeros(1, 1), torch.tensor([0]), features=features[:1])
    assert loss.terms["representation"] == 0
    loss(torch.zeros(1, 1), torch.tensor([0]), features=features[1:])
    assert loss.terms["representation"].item() == pytest.approx(3.048587, abs=1e-6)


def test_the_bank_rejects_another_width_before_anything_changes() -> None:
    loss = MR2Loss(2, memory_size=4)
    loss(LOGITS, TARGETS, features=torch.randn(2, 3))
    before = loss.stats.size.clone()
    with pytest.raises(ValueError, match="features must have 3 columns"):
        loss(LOGITS, TARGETS, features=torch.randn(2, 5))
    assert loss.stats.size.equal(before)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_classes": 3, "strength": "Auto"}, "or 'auto', got 'Auto'"),
        ({"num_classes": 3, "slack": "auto"}, "or 'spread', got 'auto'"),
        ({"num_classes": 3, "normalize": "no"}, "normalize must be True or False"),
        ({"num_classes": 3, "ignore_index": None}, "ignore_index must be an integer"),
        ({"num_classes": 0}, "num_classes must be an integer >= 1"),
        ({"num_classes": 3, "margin": 0}, "margin must be a finite number > 0"),
        ({"num_classes": 3, "strength": -1}, "strength must be a finite number >= 0"),
        ({"num_classes": 3, "strength": "strong"}, "strength must be a finite number"),
        ({"num_classes": 3, "p": 0.5}, "p must be a number >= 1"),
        ({"num_classes": 3, "logit": "wide"}, "logit must be one of 'spread'"),
        ({"num_classes": 3, "spread": "biased"}, "spread must be one of 'unbiased', 'plain'"),
        ({"num_classes": 3, "decay": 1.0}, r"decay must be in \[0, 1\)"),
        ({"num_classes": 3, "memory_size": -1}, "memory_size must be an integer"),
        ({"num_classes": 3, "reduction": "average"}, "reduction must be one of 'mean'"),
        ({"num_classes": 3, "class_counts": [1, 2]}, "class_counts must be 3 numbers"),
        ({"num_classes": 3, "class_counts": [1, 0, 2]}, "got 0 for class 1"),
    ],
)
def test_invalid_arguments_are_rejected(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MR2Loss(**arguments)
