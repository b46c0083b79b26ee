"""Averages of the weights during training: exponential (EMA) and equal, once per epoch (SWA)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.optim.swa_utils import get_ema_multi_avg_fn

from classgap._eval_mode import evaluating
from classgap.distributed import all_reduce_sum, broadcast_buffers, world_size
from classgap.engine.batches import split_micro_batches

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
    >>> average.tensors["weight"]  # 0.15 · 0.9 + 0.85 · 2
    tensor([[1.8350]])
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


class StochasticWeightAverage(WeightAverage):
    """Equal average of the weights after each epoch from a given one on (Izmailov et al., UAI 2018, arXiv 1803.05407).

        average  ←  average + (weights - average) / (n + 1),      n epochs averaged so far

    Batch norm statistics are recomputed for the averaged weights, before each evaluation and at the end of the stage.
    Other buffers are copied.

    Args:
        model: The model in training.
        start: Number of epochs before the first one to average.
    """

    def __init__(self, model: nn.Module, start: int) -> None:
        super().__init__(model)
        self.start = start

    @torch.no_grad()
    def after_epoch(self, run: Run) -> None:
        """Add the weights to the average."""
        epoch = run.position.epoch + 1
        if epoch <= self.start:
            return
        for name, parameter in self.model.named_parameters():
            self.tensors[name].add_((parameter.detach() - self.tensors[name]) / (self.count + 1))
        self._copy_buffers()
        self.count += 1
        if run.validation is not None or epoch == run.epochs:
            with self.applied():
                recompute_batch_norm(run)
                self._copy_buffers()

    def _copy_buffers(self) -> None:
        for name, buffer in self.model.named_buffers():
            self.tensors[name].copy_(buffer)


def swa_start_epoch(fraction: float, epochs: int) -> int:
    """Return the number of epochs of a stage before the first one that SWA averages.

    >>> swa_start_epoch(0.75, epochs=10)
    7
    """
    return int(fraction * epochs)


@torch.no_grad()
def recompute_batch_norm(run: Run) -> None:
    """Replace the running statistics of batch norm by their means over the batches of the current epoch.

    Dropout is off. A frozen encoder keeps its statistics, as in training. All processes must call it; they end with
    equal statistics, the means over the processes.
    """
    head = {id(parameter) for parameter in run.tap.head.parameters()}
    trained = any(each.requires_grad and id(each) not in head for each in run.model.parameters())
    layers = [each for each in run.model.modules() if isinstance(each, _BatchNorm) and each.track_running_stats]
    if not layers or not trained:
        return
    momenta = [layer.momentum for layer in layers]
    with evaluating(run.model):
        for layer in layers:
            layer.reset_running_stats()
            layer.momentum = None  # equal weights for all batches
            layer.train()
        for batch in run.batches.epoch(run.position.epoch):
            for part, _ in split_micro_batches(batch, run.config.micro_batches):
                run.outputs(run.model, part.inputs)
    for layer, momentum in zip(layers, momenta, strict=True):
        layer.momentum = momentum
        for statistic in (layer.running_mean, layer.running_var):
            assert statistic is not None
            statistic.copy_(all_reduce_sum(statistic) / world_size())


def _named_tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Iterate over parameters and buffers; tied ones occur once."""
    return chain(model.named_parameters(), model.named_buffers())
