"""Build batches, in a background thread where that pays, and move them to the device."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from classgap._threads import single_thread
from classgap.data.batch import Batch
from classgap.data.dataset import Inputs, Subset

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class DevicePrefetcher:
    """Builds batches on the CPU and moves them to a device.

    Attributes:
        device: Device of the batches.
        channels_last: Whether images use the channels-last memory format.
        background: Whether a background thread builds the next batches.
    """

    device: torch.device
    channels_last: bool
    background: bool

    @classmethod
    def from_inputs(cls, inputs: Inputs, device: str | torch.device, channels_last: bool) -> DevicePrefetcher:
        """Use a background thread if inputs are read on demand or the device is not the CPU."""
        while isinstance(inputs, Subset):
            inputs = inputs.inputs
        device = torch.device(device)
        return cls(device, channels_last, not isinstance(inputs, Tensor) or device.type != "cpu")

    def iterate(self, make_batch: Callable[[Item], Batch], items: Iterable[Item]) -> Iterator[Batch]:
        """Yield ``make_batch(item)`` on the device for each item."""

        def prepare(item: Item) -> Batch:
            return make_batch(item).map(self._prepare_tensor)

        if not self.background:
            for item in items:
                with single_thread():
                    batch = prepare(item)
                yield batch
            return
        with closing(prefetch(prepare, items)) as batches:
            for batch in batches:
                yield batch.map(lambda tensor: tensor.to(self.device, non_blocking=True))

    def _prepare_tensor(self, tensor: Tensor) -> Tensor:
        if self.channels_last and tensor.ndim == 4:
            tensor = tensor.contiguous(memory_format=torch.channels_last)
        return tensor.pin_memory() if self.device.type == "cuda" else tensor


def prefetch(work: Callable[[Item], Result], items: Iterable[Item], ahead: int = 2) -> Generator[Result]:
    """Yield ``work(item)`` in order, computing the next ``ahead`` results in one background thread.

    An exception is raised where its result is requested. The thread ends with the iterator.

    >>> list(prefetch(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    pool = ThreadPoolExecutor(1, thread_name_prefix="classgap-prefetch")
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
