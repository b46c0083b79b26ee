import pytest
import torch
import torch.nn.functional as F

from classgap.losses import ELMLoss

COUNTS = [100, 25]


def test_worked_examples() -> None:
    loss = ELMLoss([90, 10], slack=1.0, strength=1.0)
    loss(torch.zeros(2, 2), torch.tensor([1, 1]), features=torch.tensor([[0.0, 0.0], [2.0, 0.0]]))
    assert loss.terms["logit"].item() == pytest.approx(2.302585, abs=1e-6)
    assert loss.terms["pull"].item() == pytest.approx(3.048587, abs=1e-6)


def test_uniform_counts_without_pull_are_cross_entropy() -> None:
    logits, targets = torch.randn(5, 3), torch.tensor([0, 1, 2, 0, 1])
    torch.testing.assert_close(ELMLoss([7, 7, 7], strength=0)(logits, targets), F.cross_entropy(logits, targets))


@pytest.mark.parametrize(
    ("slack", "expected"),
    [
        ("sqrt-count", [10.0, 5.0]),
        ("prior", [0.8, 0.2]),
        ("10-sqrt-prior", [10 * 0.8**0.5, 10 * 0.2**0.5]),
        ("count", [100.0, 25.0]),
        (3.0, [3.0, 3.0]),
        ([1.0, 2.0], [1.0, 2.0]),
        (torch.tensor([1.0, 2.0]), [1.0, 2.0]),
    ],
)
def test_slack_by_name_and_by_number(slack, expected: list[float]) -> None:
    torch.testing.assert_close(ELMLoss(COUNTS, slack=slack).alpha, torch.tensor(expected))


def test_rare_classes_are_pulled_more() -> None:
    features = torch.tensor([[0.0], [1.0], [0.0], [1.0]])
    terms = ELMLoss(COUNTS, strength=1.0, slack="prior", reduction="none")(
        torch.zeros(4, 2), torch.tensor([0, 0, 1, 1]), features=features
    )
    pulls = terms + torch.tensor([0.8, 0.8, 0.2, 0.2]).log()  # at logits of 0 the other part is -ln π_y
    assert pulls[2] > pulls[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([3, 0],), "got 0 for class 1"),
        (([[3, 1]],), "class_counts must be one number per class"),
        ((COUNTS, "square"), "slack must be one of"),
        ((COUNTS, [1.0]), "slack must be 2 finite numbers"),
        ((COUNTS, -1.0), "slack must be a finite number >= 0"),
    ],
)
def test_invalid_arguments_are_rejected(arguments: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ELMLoss(arguments[0], **({"slack": arguments[1]} if len(arguments) > 1 else {}))
