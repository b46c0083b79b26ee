"""A loss under test, and random batches for it."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from classgap.losses import ClassLoss

Reference = Callable[[list["Inputs"]], list[float]]


def seed_torch() -> None:
    """Seed torch with 0. ``torch.manual_seed`` also formats the stack for each kind of device that is not in use."""
    torch.default_generator.manual_seed(0)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(0)


@dataclass(frozen=True)
class Inputs:
    """Inputs of one call, as leaves that require gradients.

    >>> from classgap.losses import CrossEntropyLoss
    >>> inputs = LossCase(lambda: CrossEntropyLoss(4), num_classes=4).inputs(seed=0, size=8)
    >>> inputs.logits.shape, inputs.part(slice(0, 2)).features.shape
    (torch.Size([8, 4]), torch.Size([2, 6]))
    """

    logits: Tensor
    targets: Tensor
    features: Tensor
    head: nn.Module
    index: Tensor

    def part(self, rows: slice) -> Inputs:
        """Select some samples, as new leaves."""
        return Inputs(
            self.logits[rows].detach().clone().requires_grad_(),
            self.targets[rows],
            self.features[rows].detach().clone().requires_grad_(),
            deepcopy(self.head),
            self.index[rows],
        )

    def leaves(self) -> dict[str, Tensor]:
        """Return the tensors with gradients, by name."""
        return {"logits": self.logits, "features": self.features, **dict(self.head.named_parameters(prefix="head"))}

    def gradients(self, loss: nn.Module) -> dict[str, Tensor]:
        """Return the accumulated gradients of the inputs and the parameters of the loss; zeros if there are none."""
        leaves = {**self.leaves(), **dict(loss.named_parameters(prefix="loss"))}.items()
        return {name: torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for name, leaf in leaves}


@dataclass(frozen=True)
class LossCase:
    """How to build and call a loss under test.

    Args:
        factory: Builds a new loss. It must be importable by other processes: a function of a module or a
            ``functools.partial`` of one, not a lambda.
        num_classes: Number of classes K.
        feature_dim: Number of features D.
        reference: Independent, slow implementation that returns the training-mode values of successive batches.
        compile_backend: "aot_eager" checks for a single graph; "inductor" also generates code.
        device: Device to test on.
        head: Builds a head from D and K, for losses that do not use ``nn.Linear``.

    >>> from functools import partial
    >>> from classgap.losses import CrossEntropyLoss
    >>> case = LossCase(partial(CrossEntropyLoss, 4), num_classes=4)
    >>> inputs = case.inputs(seed=0)
    >>> case.call(case.build(), inputs).dim()
    0
    """

    factory: Callable[[], ClassLoss]
    num_classes: int
    feature_dim: int = 6
    reference: Reference | None = None
    compile_backend: str = "aot_eager"
    device: str = "cpu"
    head: Callable[[int, int], nn.Module] = nn.Linear

    def build(self, *, warm: int = 0) -> ClassLoss:
        """Build a loss in training mode and call it with ``warm`` batches."""
        seed_torch()
        loss = self.factory().to(self.device)
        for seed in range(warm):
            self.call(loss, self.inputs(100 + seed))
        return loss

    def inputs(self, seed: int, *, size: int = 16, dtype: torch.dtype = torch.float32) -> Inputs:
        """Draw a batch with several samples in most classes; the last of three or more classes is absent."""
        generator = torch.Generator().manual_seed(seed)
        present = self.num_classes - 1 if self.num_classes > 2 else self.num_classes
        targets = torch.randint(present, (size,), generator=generator)
        centers = torch.randn(self.num_classes, self.feature_dim, generator=generator)
        features = centers[targets] + 0.5 * torch.randn(size, self.feature_dim, generator=generator)
        head = self.head(self.feature_dim, self.num_classes)
        for parameter in head.parameters():
            parameter.data = torch.randn(parameter.shape, generator=generator)
        # Mostly correct, so that terms which require p > 1/2 contribute.
        logits = torch.randn(size, self.num_classes, generator=generator)
        logits += 4 * torch.nn.functional.one_hot(targets, self.num_classes)
        index = torch.randperm(64, generator=generator)[:size]
        made = Inputs(logits, targets, features, head, index)
        return self.moved(made, dtype)

    def moved(self, inputs: Inputs, dtype: torch.dtype) -> Inputs:
        """Convert inputs to another dtype on the device of the case, as new leaves."""
        return Inputs(
            inputs.logits.detach().to(self.device, dtype).requires_grad_(),
            inputs.targets.to(self.device),
            inputs.features.detach().to(self.device, dtype).requires_grad_(),
            deepcopy(inputs.head).to(self.device, dtype),
            inputs.index.to(self.device),
        )

    @staticmethod
    def call(loss: Callable[..., Tensor], inputs: Inputs, **changes: Any) -> Tensor:
        """Call the loss with all inputs; ``changes`` replaces some of them."""
        seed_torch()  # for losses with random masks
        named = {name: changes.pop(name, getattr(inputs, name)) for name in ("logits", "targets")}
        extras = {"features": inputs.features, "head": inputs.head, "index": inputs.index, **changes}
        return loss(named["logits"], named["targets"], **extras)

    def with_(self, **changes: Any) -> LossCase:
        """Return a copy with some fields replaced."""
        return replace(self, **changes)
