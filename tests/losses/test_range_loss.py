import pytest
import torch
import torch.nn.functional as F

from classgap.losses import RangeLoss


def terms(features: list[float], targets: list[int], **settings) -> dict[str, float]:
    loss = RangeLoss(3, **{"squared": False, **settings})
    loss(torch.zeros(len(targets), 3), torch.tensor(targets), features=torch.tensor(features)[:, None])
    return {name: term.item() for name, term in loss.terms.items()}


def test_worked_example_of_the_ranges() -> None:
    assert terms([0.0, 1.0, 2.0], [0, 0, 0])["intra"] == pytest.approx(4 / 3)


def test_two_samples_are_one_pair_and_one_is_none() -> None:
    assert terms([0.0, 3.0, 50.0], [0, 0, 1])["intra"] == pytest.approx(3.0)


def test_classes_add_up_whatever_their_size() -> None:
    assert terms([0.0, 1.0, 2.0, 50.0, 55.0], [0, 0, 0, 1, 1])["intra"] == pytest.approx(4 / 3 + 5)


def test_centers_beyond_the_margin_cost_nothing() -> None:
    assert terms([0.0, 1.0], [0, 1], margin=0.9)["inter"] == 0
    assert terms([0.0, 1.0], [0, 0], margin=9.0)["inter"] == 0


def test_the_nearest_centers_count() -> None:
    features, targets = [0.0, 2.0, 4.0, 9.0], [0, 0, 1, 2]  # centers 1, 4 and 9
    assert terms(features, targets, margin=4.0)["inter"] == pytest.approx(1.0)
    assert terms(features, targets, margin=10.0, intra=0.0, squared=True) == pytest.approx(
        {"cross_entropy": 1.0986123, "inter": 1.0}
    )


def test_no_weights_are_cross_entropy_without_features() -> None:
    logits, targets = torch.randn(5, 3), torch.tensor([0, 1, 2, 0, 1])
    torch.testing.assert_close(RangeLoss(3, intra=0, inter=0)(logits, targets), F.cross_entropy(logits, targets))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"widest": 0}, "widest must be an integer >= 1"),
        ({"intra": -1.0}, "intra must be a finite number >= 0"),
        ({"margin": float("inf")}, "margin must be a finite number"),
    ],
)
def test_invalid_arguments_are_rejected(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RangeLoss(3, **settings)


def test_the_defaults_leave_a_network_its_features_and_the_copied_weights_do_not() -> None:
    labels = torch.arange(60) % 4
    inputs = 2 * torch.randn(4, 6)[labels] + torch.randn(60, 6)

    def accuracy(**settings) -> float:
        torch.manual_seed(0)
        body, head = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU()), torch.nn.Linear(16, 4)
        loss = RangeLoss(4, **settings)
        optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
        for _ in range(80):
            features = body(inputs)
            optimizer.zero_grad()
            loss(head(features), labels, features=features).backward()
            optimizer.step()
        return (head(body(inputs)).argmax(dim=1) == labels).float().mean().item()

    assert accuracy() > 0.9
    assert accuracy(intra=0.5, inter=0.5, margin=0.1, squared=False) < 0.5
