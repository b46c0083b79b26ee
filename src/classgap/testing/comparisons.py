"""Assertions about the state and results of a loss."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from classgap.losses import ClassLoss
from classgap.testing.loss_case import Inputs, LossCase


def assert_same_state(loss: nn.Module, other: nn.Module, *, exactly: bool = False) -> None:
    """Assert equal states, up to rounding unless ``exactly``."""
    theirs = other.state_dict()
    rtol, atol = (0.0, 0.0) if exactly else (1e-5, 1e-6)
    for name, tensor in loss.state_dict().items():
        same = tensor.shape == theirs[name].shape and torch.allclose(tensor, theirs[name], rtol=rtol, atol=atol)
        assert same, f"{name} differs: {tensor} and {theirs[name]}"


@contextmanager
def assert_unchanged(loss: nn.Module) -> Iterator[None]:
    """Assert that the state is bitwise equal afterward."""
    before = {name: tensor.clone() for name, tensor in loss.state_dict().items()}
    yield
    for name, tensor in loss.state_dict().items():
        assert name in before and torch.equal(tensor, before[name]), f"{name} changed"


def finite_with_gradients(case: LossCase, loss: ClassLoss, inputs: Inputs, **changes: Any) -> Tensor:
    """Return the value of the loss after checking that value, gradients and state are finite."""
    changes = {
        name: value.detach().clone().requires_grad_() if value.is_floating_point() else value
        for name, value in changes.items()
    }
    inputs = inputs.part(slice(None))
    value = case.call(loss, inputs, **changes)
    assert value.isfinite(), f"the loss is {value.item()}"
    value.backward()
    leaves = inputs.leaves() | {name: leaf for name, leaf in changes.items() if leaf.requires_grad}
    leaves |= dict(loss.named_parameters(prefix="loss"))
    for name, leaf in leaves.items():
        assert leaf.grad is None or leaf.grad.isfinite().all(), f"the gradient of {name} is not finite"
    for name, tensor in loss.state_dict().items():
        assert tensor.isfinite().all(), f"{name} is not finite"
    return value.detach()
