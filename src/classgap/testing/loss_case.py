"""A loss under test, and made-up batches to call it with."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from classgap.losses import ClassLoss

Reference = Callable[[list["Inputs"]], list[float]]


@dataclass(frozen=True)
class Inputs:
    """One call's inputs, on leaves that collect gradients."""

    logits: Tensor
    targets: Tensor
    features: Tensor
    head: nn.Module
    index: Tensor

    def part(self, rows: slice) -> Inputs:
        """The same for some of the samples, on fresh leaves."""
        return Inputs(
            self.logits[rows].detach().clone().requires_grad_(),
            self.targets[rows],
            self.features[rows].detach().clone().requires_grad_(),
            deepcopy(self.head),
            self.index[rows],
        )

    def leaves(self) -> dict[str, Tensor]:
        """What gradients are taken of."""
        return {"logits": self.logits, "features": self.features, **dict(self.head.named_parameters(prefix="head"))}

    def gradients(self, loss: nn.Module) -> dict[str, Tensor]:
        """The gradients collected so far, of the inputs and the loss's own parameters; zeros where there is none."""
        leaves = {**self.leaves(), **dict(loss.named_parameters(prefix="loss"))}.items()
        return {name: torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for name, leaf in leaves}


@dataclass(frozen=True)
class LossCase:
    """How to build a loss, and what it is built for.

    Args:
        factory: builds a fresh loss; must be importable by other processes (a function of a module or a
            ``functools.partial`` of one, not a lambda).
        num_classes: K of the loss.
        feature_dim: D of the features to make up.
        reference: an independent, slow computation: the training-mode values of a fresh loss on successive batches.
        compile_backend: "aot_eager" checks that the loss is one graph; "inductor" generates code too.
        device: where to test.
        head: builds a head of D features and K classes, for losses that take another than ``nn.Linear``.
    """

    factory: Callable[[], ClassLoss]
    num_classes: int
    feature_dim: int = 6
    reference: Reference | None = None
    compile_backend: str = "aot_eager"
    device: str = "cpu"
    head: Callable[[int, int], nn.Module] = nn.Linear

    def build(self, *, warm: int = 0) -> ClassLoss:
        """A fresh loss in training mode that has seen ``warm`` batches."""
        torch.manual_seed(0)
        loss = self.factory().to(self.device)
        for seed in range(warm):
            self.call(loss, self.inputs(100 + seed))
        return loss

    def inputs(self, seed: int, *, size: int = 16, dtype: torch.dtype = torch.float32) -> Inputs:
        """A random batch with several samples in most classes; the last class is left out, if there are three."""
        generator = torch.Generator().manual_seed(seed)
        present = self.num_classes - 1 if self.num_classes > 2 else self.num_classes
        targets = torch.randint(present, (size,), generator=generator)
        centers = torch.randn(self.num_classes, self.feature_dim, generator=generator)
        features = centers[targets] + 0.5 * torch.randn(size, self.feature_dim, generator=generator)
        head = self.head(self.feature_dim, self.num_classes)
        for parameter in head.parameters():
            parameter.data = torch.randn(parameter.shape, generator=generator)
        # Right more often than not, so that terms which wait for that take part.
        logits = torch.randn(size, self.num_classes, generator=generator)
        logits += 4 * torch.nn.functional.one_hot(targets, self.num_classes)
        index = torch.randperm(64, generator=generator)[:size]
        made = Inputs(logits, targets, features, head, index)
        return self.moved(made, dtype)

    def moved(self, inputs: Inputs, dtype: torch.dtype) -> Inputs:
        """The inputs in another precision on the case's device, on fresh leaves."""
        return Inputs(
            inputs.logits.detach().to(self.device, dtype).requires_grad_(),
            inputs.targets.to(self.device),
            inputs.features.detach().to(self.device, dtype).requires_grad_(),
            deepcopy(inputs.head).to(self.device, dtype),
            inputs.index.to(self.device),
        )

    @staticmethod
    def call(loss: Callable[..., Tensor], inputs: Inputs, **changes: Any) -> Tensor:
        """Call the loss with everything it could want; ``changes`` replace inputs."""
        torch.manual_seed(0)  # for losses with random masks
        named = {name: changes.pop(name, getattr(inputs, name)) for name in ("logits", "targets")}
        extras = {"features": inputs.features, "head": inputs.head, "index": inputs.index, **changes}
        return loss(named["logits"], named["targets"], **extras)

    def with_(self, **changes: Any) -> LossCase:
        """A copy with some fields replaced."""
        return replace(self, **changes)
