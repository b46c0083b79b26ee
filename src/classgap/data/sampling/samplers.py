"""The orders of classgap for a ``torch.utils.data.DataLoader``, with several processes and with state.

sampler = ClassBalancedSampler(targets)
loader = DataLoader(dataset, batch_size=128, sampler=sampler)
for epoch in range(sampler.epoch, 90):
    sampler.set_epoch(epoch)
    for images, targets in loader: ...
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Generic, TypeVar

from torch import Tensor
from torch.utils.data import Sampler

from classgap import distributed
from classgap.data.sampling.order import ClassAware, ClassBalanced, Order, share_of

Item = TypeVar("Item")


class _OrderSampler(Sampler[Item], ABC, Generic[Item]):
    """Hands out this process's part of an order and remembers how far it came."""

    def __init__(self, order: Order, num_replicas: int | None, rank: int | None) -> None:
        self.order = order
        self.num_replicas = distributed.world_size() if num_replicas is None else num_replicas
        self.rank = distributed.rank() if rank is None else rank
        if not 0 <= self.rank < self.num_replicas:
            raise ValueError(f"rank must be from 0 to num_replicas - 1 = {self.num_replicas - 1}; got {self.rank}.")
        self.epoch = 0
        self._start = 0
        self._position = 0

    @abstractmethod
    def _items(self) -> list[Item]:
        """What this process uses in this epoch."""

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch comes next; a position that was loaded is kept if it is of this epoch."""
        if epoch != self.epoch:
            self.epoch, self._start, self._position = epoch, 0, 0

    def __iter__(self) -> Iterator[Item]:
        start, self._start = self._start, 0
        for position, item in enumerate(self._items()[start:], start + 1):
            self._position = position
            yield item
        self._position = 0

    def state_dict(self, *, position: int | None = None) -> dict[str, int]:
        """Where it is.

        Args:
            position: how many items (samples, or batches of a batch sampler) of this epoch this process has used; by
                default how many were handed out. A loader with workers asks ahead of training: count there yourself.
        """
        return {"epoch": self.epoch, "position": self._position if position is None else position}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on where ``state`` was: the next iteration begins with the first item that was not used."""
        epoch, position = state["epoch"], state["position"]
        if epoch < 0 or not 0 <= position <= len(self):
            raise ValueError(
                f"state must have an epoch from 0 and a position from 0 to {len(self)}; got {epoch} and {position}. "
                "It was saved with other data or another number of processes."
            )
        self.epoch, self._start, self._position = epoch, position, position

    @abstractmethod
    def __len__(self) -> int:
        """How many items that are."""


class ClassBalancedSampler(_OrderSampler[int]):
    """Draw all classes equally often; see :class:`~classgap.data.sampling.order.ClassBalanced`.

    Of W processes each takes every W-th draw, all equally many.

    Args:
        targets: the class of each sample.
        seed: of the draws.
        length: draws an epoch of all processes together; by default as many as there are samples.
        num_replicas: number of processes; by default those of ``torch.distributed``, or 1.
        rank: number of this process.

    >>> import torch
    >>> sampler = ClassBalancedSampler(torch.tensor([0, 0, 0, 1]))
    >>> len(list(sampler)), sampler.state_dict()
    (4, {'epoch': 0, 'position': 0})
    """

    def __init__(
        self,
        targets: Tensor,
        *,
        seed: int = 0,
        length: int | None = None,
        num_replicas: int | None = None,
        rank: int | None = None,
    ) -> None:
        super().__init__(ClassBalanced(targets, seed, length), num_replicas, rank)

    def _items(self) -> list[int]:
        return self.order(self.epoch)[: len(self) * self.num_replicas][self.rank :: self.num_replicas].tolist()

    def __len__(self) -> int:
        # Processes with different numbers of steps would wait for each other for ever: the rest is left out.
        return len(self.order) // self.num_replicas


class ClassAwareBatchSampler(_OrderSampler[list[int]]):
    """Batches of a few classes, equally many samples each; see :class:`~classgap.data.sampling.order.ClassAware`.

    Of W processes each takes whole classes of every batch. Use it as ``batch_sampler``.

    Args:
        targets: the class of each sample.
        per_class: samples of each class in a batch.
        classes_per_batch: different classes in a batch of all processes together; a multiple of their number.
        seed: of the draws.
        num_replicas: number of processes; by default those of ``torch.distributed``, or 1.
        rank: number of this process.

    >>> import torch
    >>> sampler = ClassAwareBatchSampler(torch.tensor([0, 0, 1, 1]), per_class=2, classes_per_batch=2)
    >>> [sorted(batch) for batch in sampler]
    [[0, 1, 2, 3]]
    """

    def __init__(
        self,
        targets: Tensor,
        per_class: int,
        classes_per_batch: int,
        *,
        seed: int = 0,
        num_replicas: int | None = None,
        rank: int | None = None,
    ) -> None:
        order = ClassAware(targets, per_class, classes_per_batch, seed)
        super().__init__(order, num_replicas, rank)
        if classes_per_batch % self.num_replicas:
            raise ValueError(
                f"classes_per_batch must be a multiple of the {self.num_replicas} processes; got {classes_per_batch}."
            )
        self.batch_size = order.batch_size

    def _items(self) -> list[list[int]]:
        mine = share_of(self.batch_size, self.rank, self.num_replicas)
        return self.order(self.epoch).view(-1, self.batch_size)[:, mine].tolist()

    def __len__(self) -> int:
        return len(self.order) // self.batch_size
