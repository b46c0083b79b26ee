import pytest
import torch
import torch.nn.functional as F

from classgap.functional import chi_square_weights
from classgap.losses import FairDROLoss


@pytest.mark.parametrize(
    ("losses", "expected"),
    [([1.0, 3.0], [0.0, 1.0]), ([1.0, 2.0, 3.0], [-0.0749, 0.3333, 0.7416]), ([2.0, 2.0], [0.5, 0.5]), ([5.0], [1.0])],
)
def test_worked_examples(losses: list[float], expected: list[float]) -> None:
    torch.testing.assert_close(chi_square_weights(torch.tensor(losses), 0.5), torch.tensor(expected), rtol=0, atol=1e-4)


def test_a_small_radius_leaves_no_weight_negative() -> None:
    classes = 20
    one_good_class = torch.ones(classes, dtype=torch.float64)
    one_good_class[0] = 0  # the worst case
    assert chi_square_weights(one_good_class, 1 / (2 * (classes - 1))).min() >= -1e-12
    assert chi_square_weights(one_good_class, 1.1 / (2 * (classes - 1))).min() < 0


def test_without_radius_it_is_the_mean_of_class_means() -> None:
    logits, targets = torch.randn(6, 3), torch.tensor([0, 0, 0, 1, 2, 2])
    loss = FairDROLoss(3, radius=0)
    loss.update_weights([1.0, 5.0, 2.0])
    means = [F.cross_entropy(logits[targets == c], targets[targets == c]) for c in range(3)]
    torch.testing.assert_close(loss(logits, targets), torch.stack(means).mean())
    balanced = torch.tensor([0, 0, 1, 1, 2, 2])
    torch.testing.assert_close(loss(logits, balanced), F.cross_entropy(logits, balanced))


def test_late_answers_move_the_weights_less() -> None:
    loss = FairDROLoss(2)
    loss.update_weights([1.0, 3.0])
    loss.update_weights([3.0, 1.0], progress=0.75)  # a quarter of the way from (0, 1) to (1, 0)
    torch.testing.assert_close(loss.weights, torch.tensor([0.25, 0.75]))
    loss.update_weights([3.0, 1.0], progress=1.0)
    torch.testing.assert_close(loss.weights, torch.tensor([0.25, 0.75]))


@pytest.mark.parametrize(
    ("losses", "progress", "message"),
    [
        ([1.0], 0.0, "class_losses must be 2 finite numbers"),
        ([1.0, float("nan")], 0.0, "class_losses must be 2 finite numbers"),
        ([1.0, 2.0], 1.5, r"progress must be in \[0, 1\], got 1.5"),
    ],
)
def test_wrong_class_losses_are_rejected(losses: list[float], progress: float, message: str) -> None:
    loss = FairDROLoss(2)
    with pytest.raises(ValueError, match=message):
        loss.update_weights(losses, progress=progress)
    assert loss.weights.tolist() == [0.5, 0.5]
