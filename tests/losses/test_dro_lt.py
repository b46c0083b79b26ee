import pytest
import torch
import torch.nn.functional as F

from classgap.losses import DROLTLoss

PLACES = torch.tensor([[0.0], [10.0]])
LOGITS, TARGETS = torch.zeros(2, 2), torch.tensor([0, 1])


@pytest.mark.parametrize(("epsilon", "expected"), [(0.0, 4.54e-5), (1.0, 1.234e-4), ("learned", 1.234e-4)])
def test_worked_examples(epsilon: float | str, expected: float) -> None:
    loss = DROLTLoss(2, 1, epsilon=epsilon)
    loss.update(PLACES)
    loss(LOGITS, TARGETS, features=PLACES)
    assert loss.terms["robust"].item() == pytest.approx(expected, rel=1e-3)


def test_elm_equation_5_by_hand() -> None:
    loss = DROLTLoss(2, 1, squared=True, average="sample", centroids="running", epsilon=2.0, class_counts=[75, 25])
    torch.testing.assert_close(loss.epsilon, torch.tensor([2 / 0.75**0.5, 4.0]))
    loss(LOGITS, TARGETS, features=torch.tensor([[0.0], [1.0]]))
    expected = torch.log1p(torch.exp(-1 + loss.epsilon)).mean()
    torch.testing.assert_close(loss.terms["robust"], expected)


def test_epsilons_learn_and_only_downwards() -> None:
    loss = DROLTLoss(2, 1)
    loss.update(PLACES)
    loss(LOGITS, TARGETS, features=torch.tensor([[4.0], [5.0]])).backward()
    assert [name for name, _ in loss.named_parameters()] == ["epsilon"]
    assert (loss.epsilon.grad > 0).all()


def test_classes_without_a_centroid_have_no_term() -> None:
    loss = DROLTLoss(2, 1, reduction="none", epsilon=0.0)
    loss.update(PLACES, seen=torch.tensor([True, False]))
    each = loss(LOGITS, TARGETS, features=torch.tensor([[1.0], [2.0]])) - F.cross_entropy(LOGITS, TARGETS)
    torch.testing.assert_close(each, torch.tensor([2 * torch.log1p(torch.exp(torch.tensor(-1.0))), 0.0]))


def test_centroids_have_to_be_given_or_running() -> None:
    with pytest.raises(ValueError, match=r"no centroids yet: call loss\.update\("):
        DROLTLoss(2, 1)(LOGITS, TARGETS, features=PLACES)
    loss = DROLTLoss(2, 1, centroids="running", momentum=0.5)
    loss(LOGITS, TARGETS, features=PLACES)
    loss(LOGITS, TARGETS, features=PLACES + 1)
    torch.testing.assert_close(loss.centroids.means, PLACES + 0.5)


def test_no_strength_is_cross_entropy_without_features_or_centroids() -> None:
    logits, targets = torch.randn(5, 3), torch.tensor([0, 1, 2, 0, 1])
    torch.testing.assert_close(DROLTLoss(3, 2, strength=0)(logits, targets), F.cross_entropy(logits, targets))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": -1.0}, "epsilon must be a finite number .*'learned'"),
        ({"epsilon": "sqrt"}, "epsilon must be a finite number .*'learned'"),
        ({"class_counts": [1, 2]}, "class_counts scales a fixed epsilon"),
        ({"epsilon": 1.0, "class_counts": [1]}, "class_counts must be 2 numbers"),
        ({"centroids": "exact"}, "centroids must be one of 'given', 'running'"),
        ({"average": "mean"}, "average must be one of 'class', 'sample'"),
    ],
)
def test_invalid_arguments_are_rejected(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DROLTLoss(2, 1, **settings)


def test_wrong_centroids_are_rejected() -> None:
    loss = DROLTLoss(2, 1)
    for centroids, seen, message in (
        (torch.zeros(2, 3), None, r"centroids .*\(2, 1\), got shape \(2, 3\)"),
        (torch.tensor([[0.0], [torch.nan]]), None, "centroids must be finite"),
        (PLACES, torch.ones(2), "seen must be 2 booleans"),
    ):
        with pytest.raises(ValueError, match=message):
            loss.update(centroids, seen)
    assert not loss.centroids.seen.any()
