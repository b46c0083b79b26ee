"""``by_sample``: which losses of a batch are those of its parts."""

import pytest
import torch
from test_conformance import CASES
from torch import Tensor

from classgap.losses import ClassLoss
from classgap.testing.loss_case import Inputs, LossCase

# Forms of losses that compare or remember in their other forms, or in other batches.
CAREFUL = {"center-trained", "group-dro-one-class", "mutual-information-one-class"}


def value_and_gradients(
    case: LossCase, loss: ClassLoss, inputs: Inputs, fraction: float = 1.0
) -> tuple[Tensor, Tensor]:
    """Return the scaled loss and its gradients with respect to logits and features, one row per sample."""
    value = fraction * case.call(loss, inputs)
    leaves = (inputs.logits, inputs.features)
    gradients = torch.autograd.grad(value, leaves, allow_unused=True, materialize_grads=True)
    return value.detach(), torch.cat(gradients, dim=1)


def in_parts(case: LossCase, loss: ClassLoss, batch: Inputs) -> tuple[Tensor, Tensor]:
    """The same of a batch of 16 in two parts."""
    parts = [
        value_and_gradients(case, loss, batch.part(rows), fraction)
        for rows, fraction in ((slice(0, 6), 0.375), (slice(6, 16), 0.625))
    ]
    return parts[0][0] + parts[1][0], torch.cat([parts[0][1], parts[1][1]])


@pytest.mark.parametrize("name", CASES)
def test_by_sample_losses_can_be_split_into_micro_batches(name: str) -> None:
    case = CASES[name]
    loss, other = case.build(), case.build()
    batches = [case.inputs(seed) for seed in range(3)]
    whole = [value_and_gradients(case, loss, batch) for batch in batches]
    parts = [in_parts(case, other, batch) for batch in batches]
    same = all(
        torch.allclose(one, two, rtol=1e-4, atol=1e-5)
        for pair in zip(whole, parts, strict=True)
        for one, two in zip(*pair, strict=True)
    )
    assert same == (loss.by_sample or name in CAREFUL)
    assert isinstance(loss.by_sample, bool)
    assert all(torch.isfinite(each).all() for pair in whole for each in pair)
