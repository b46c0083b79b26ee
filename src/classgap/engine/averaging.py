"""Averages of the weights during training: exponential moving averages (EMA)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

from classgap.distributed import broadcast_buffers

if TYPE_CHECKING:
    from classgap.engine.run import Run


class WeightAverage:
    """Average of a model's parameters and buffers over a stage of training.

    Args:
        model: The model in training. Its tensors must not be replaced, only changed in place.

    Attributes:
        tensors: Averaged parameters and buffers by name.
        count: Number of averaged models; with 0 the average is the model itself.
    """

    def __init__(self, model: nn.Module) -> None:
        self.model, self.count = model, 0
        self.tensors = {name: tensor.detach().clone() for name, tensor in _named_tensors(model)}

    def after_step(self) -> None:
        """Run after each optimizer step; a step that the fp16 scaler skipped does not count."""

    def after_epoch(self, run: Run) -> None:
        """Run after the last step of each epoch, on all processes."""

    @torch.no_grad()
    def copy_to_model(self) -> None:
        """Overwrite the model's weights with the average, and its buffers with those of process 0."""
        if self.count:
            for name, tensor in _named_tensors(self.model):
                tensor.copy_(self.tensors[name])
            # Each process saw its own part of the data, so their batch norm statistics differ.
            broadcast_buffers(self.model)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Use the average inside the context and restore the weights in training on exit."""
        kept = {name: tensor.detach().clone() for name, tensor in _named_tensors(self.model)} if self.count else {}
        self.copy_to_model()
        try:
            yield
        finally:
            with torch.no_grad():
                for name, tensor in _named_tensors(self.model) if kept else ():
                    tensor.copy_(kept[name])

    def state_dict(self) -> dict[str, Any]:
        """Return the average and the number of averaged models."""
        return {"tensors": self.tensors, "count": self.count}

    @torch.no_grad()
    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state."""
        self.count = state["count"]
        for name, tensor in self.tensors.items():
            tensor.copy_(state["tensors"][name])


class ExponentialAverage(WeightAverage):
    """Exponential moving average after each optimizer step t = 0, 1, …, of parameters and floating-point buffers.

        average  ←  β_t average + (1 - β_t) weights,      β_t = min(β, (1 + t) / (10 + t))

    The warmup of β_t keeps the initial weights from dominating short runs: after t steps it averages over about t / 9
    of them, up to 1 / (1 - β). Integer buffers, such as the batch count of batch norm, are copied.

    Args:
        model: The model in training.
        decay: β, in (0, 1).

    >>> model = nn.Linear(1, 1, bias=False)
    >>> _ = model.weight.data.fill_(0.0)
    >>> average = ExponentialAverage(model, decay=0.15)
    >>> for value in (1.0, 2.0):
    ...     _ = model.weight.data.fill_(value)
    ...     average.after_step()
    >>> average.tensors["weight"].item()  # 0.15 · 0.9 + 0.85 · 2
    1.835
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        super().__init__(model)
        self.decay = decay

    @torch.no_grad()
    def after_step(self) -> None:
        """Move the average toward the weights."""
        decay = min(self.decay, (1 + self.count) / (10 + self.count))
        pairs = [(self.tensors[name], tensor.detach()) for name, tensor in _named_tensors(self.model)]
        averaged = [pair for pair in pairs if pair[0].is_floating_point()]
        get_ema_multi_avg_fn(decay)([ours for ours, _ in averaged], [theirs for _, theirs in averaged], self.count)
        for ours, theirs in pairs:
            if not ours.is_floating_point():
                ours.copy_(theirs)
        self.count += 1


def _named_tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Iterate over parameters and buffers; tied ones occur once."""
    return chain(model.named_parameters(), model.named_buffers())
