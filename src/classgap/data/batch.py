"""One batch, and how batches get from a split to a device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from classgap.data.dataset import Inputs, Rows
from classgap.data.prefetch import prefetched

Item = TypeVar("Item")


@dataclass(frozen=True)
class Batch:
    """This process's part of a batch.

    Attributes:
        inputs: (B, …), float32, augmented and normalised.
        targets: what to learn: (B,), int64, or (B, K), float32, after mixing.
        labels: (B,), int64, the samples' own classes.
        rows: (B,), the samples' places in the split.
        total: samples of the batch on all processes.
        other_view: (B, …), the same samples augmented again, if two views were asked for.
    """

    inputs: Tensor
    targets: Tensor
    labels: Tensor
    rows: Tensor
    total: int
    other_view: Tensor | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def each(self, change: Callable[[Tensor], Tensor]) -> Batch:
        """The batch with all of its tensors changed."""
        return Batch(
            change(self.inputs),
            change(self.targets),
            change(self.labels),
            change(self.rows),
            self.total,
            None if self.other_view is None else change(self.other_view),
        )


def gathered(inputs: Inputs, rows: Tensor) -> Tensor:
    """The inputs of some rows.

    >>> gathered(torch.arange(6).view(3, 2), torch.tensor([2, 0]))
    tensor([[4, 5],
            [0, 1]])
    """
    # index_select copies whole samples, where indexing goes number by number.
    if isinstance(inputs, Rows):
        return gathered(inputs.inputs, inputs.rows.index_select(0, rows))
    return inputs.index_select(0, rows) if isinstance(inputs, Tensor) else inputs[rows]


@dataclass(frozen=True)
class Delivery:
    """How batches are made and where they go.

    Attributes:
        device: where they are used.
        channels_last: the memory format of images.
        ahead: whether a thread makes the next ones meanwhile.
    """

    device: torch.device
    channels_last: bool
    ahead: bool

    @classmethod
    def from_inputs(cls, inputs: Inputs, device: str | torch.device, channels_last: bool) -> Delivery:
        """Working ahead pays for inputs that are read from somewhere, or a device that works meanwhile."""
        while isinstance(inputs, Rows):
            inputs = inputs.inputs
        device = torch.device(device)
        return cls(device, channels_last, not isinstance(inputs, Tensor) or device.type != "cpu")

    def __call__(self, make: Callable[[Item], Batch], items: Iterable[Item]) -> Iterator[Batch]:
        """What ``make`` makes of each item, on the device."""

        def prepared(item: Item) -> Batch:
            return make(item).each(self._prepared)

        if not self.ahead:
            for item in items:
                with _one_thread():
                    batch = prepared(item)
                yield batch
            return
        with closing(prefetched(prepared, items)) as batches:
            for batch in batches:
                yield batch.each(lambda tensor: tensor.to(self.device, non_blocking=True))

    def _prepared(self, tensor: Tensor) -> Tensor:
        if self.channels_last and tensor.ndim == 4:
            tensor = tensor.contiguous(memory_format=torch.channels_last)
        return tensor.pin_memory() if self.device.type == "cuda" else tensor


@contextmanager
def _one_thread() -> Iterator[None]:
    """Operations on a batch of small images are too short to share: on a busy machine threads wait at each of them."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
