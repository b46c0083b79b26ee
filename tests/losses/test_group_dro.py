import math

import pytest
import torch
import torch.nn.functional as F

from classgap.functional import exponentiated_step
from classgap.losses import GroupDROLoss


def logits_with_losses(*losses: float) -> tuple[torch.Tensor, torch.Tensor]:
    """One sample a class, whose cross-entropy is as given."""
    logits = torch.zeros(len(losses), len(losses))
    for k, loss in enumerate(losses):
        others = math.log(math.expm1(loss) / (len(losses) - 1))
        logits[k] = others
        logits[k, k] = 0
    return logits, torch.arange(len(losses))


def test_worked_example() -> None:
    loss = GroupDROLoss(2)
    value = loss(*logits_with_losses(1.0, 2.0))
    torch.testing.assert_close(loss.weights(), torch.tensor([0.4975, 0.5025]), rtol=0, atol=1e-5)
    assert value.item() == pytest.approx(1.5025, abs=1e-5)


def test_without_a_step_it_is_the_mean_of_class_means() -> None:
    logits, targets = torch.randn(6, 3), torch.tensor([0, 0, 0, 1, 2, 2])
    means = [F.cross_entropy(logits[targets == c], targets[targets == c]) for c in range(3)]
    torch.testing.assert_close(GroupDROLoss(3, step=0)(logits, targets), torch.stack(means).mean())


def test_one_sample_per_class_and_no_step_is_cross_entropy() -> None:
    logits, targets = torch.randn(3, 3), torch.tensor([2, 0, 1])
    torch.testing.assert_close(GroupDROLoss(3, step=0)(logits, targets), F.cross_entropy(logits, targets))


def test_absent_classes_keep_their_share_unless_it_is_shared_out() -> None:
    logits, targets = torch.randn(4, 4), torch.tensor([0, 0, 1, 1])
    plain, shared = (GroupDROLoss(4, step=0, renormalize=share)(logits, targets) for share in (False, True))
    torch.testing.assert_close(shared, 2 * plain)


def test_a_weight_that_vanished_can_return() -> None:
    log_weights = torch.tensor([0.5, 0.5]).log()
    for losses in ([0.0, 500.0], [500.0, 0.0]):
        log_weights = exponentiated_step(log_weights, torch.tensor(losses), step=1.0)
    torch.testing.assert_close(log_weights.exp(), torch.tensor([0.5, 0.5]))


def test_no_gradient_flows_through_the_weights() -> None:
    logits, targets = torch.randn(4, 2, requires_grad=True), torch.tensor([0, 0, 0, 1])
    loss = GroupDROLoss(2, step=1.0)
    loss(logits, targets).backward()
    weights = loss.weights()
    plain = logits.detach().softmax(dim=1) - F.one_hot(targets, 2)
    torch.testing.assert_close(logits.grad, plain * weights[targets, None] / torch.tensor([3, 3, 3, 1])[:, None])


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(ValueError, match="step must be a finite number >= 0"):
        GroupDROLoss(2, step=-1)
    with pytest.raises(ValueError, match="renormalize must be True or False"):
        GroupDROLoss(2, renormalize=1)
