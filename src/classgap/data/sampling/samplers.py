"""Samplers for ``torch.utils.data.DataLoader``, distributed and resumable.

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
from classgap.data.sampling.batching import shard_slice
from classgap.data.sampling.orders import ClassAwareOrder, ClassBalancedOrder, Order, QuotaOrder

Item = TypeVar("Item")


class _OrderSampler(Sampler[Item], ABC, Generic[Item]):
    """Iterate over this process's part of an order and track the position."""

    def __init__(self, order: Order, num_replicas: int | None, rank: int | None) -> None:
        self.order = order
        self.num_replicas = distributed.world_size() if num_replicas is None else num_replicas
        self.rank = distributed.rank() if rank is None else rank
        if not 0 <= self.rank < self.num_replicas:
            raise ValueError(f"rank must be in [0, {self.num_replicas - 1}], got {self.rank}.")
        self.epoch = 0
        self._start = 0
        self._position = 0

    @abstractmethod
    def _items(self) -> list[Item]:
        """Return this process's items of the current epoch."""

    def set_epoch(self, epoch: int) -> None:
        """Set the next epoch. A position loaded for the same epoch is kept."""
        if epoch != self.epoch:
            self.epoch, self._start, self._position = epoch, 0, 0

    def __iter__(self) -> Iterator[Item]:
        start, self._start = self._start, 0
        for position, item in enumerate(self._items()[start:], start + 1):
            self._position = position
            yield item
        self._position = 0

    def state_dict(self, *, position: int | None = None) -> dict[str, int]:
        """Return the epoch and the position in it.

        Args:
            position: Number of items (samples, or batches of a batch sampler) this process has used in this epoch.
                Defaults to the number yielded so far. A loader with workers prefetches: pass your own count there.
        """
        return {"epoch": self.epoch, "position": self._position if position is None else position}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Resume from ``state``: the next iteration starts with the first unused item."""
        epoch, position = state["epoch"], state["position"]
        if epoch < 0 or not 0 <= position <= len(self):
            raise ValueError(
                f"state must have epoch >= 0 and position in [0, {len(self)}], got epoch {epoch} and position "
                f"{position}. It was saved with different data or another number of processes."
            )
        self.epoch, self._start, self._position = epoch, position, position

    @abstractmethod
    def __len__(self) -> int:
        """Number of items per epoch of this process."""


class _SampleSampler(_OrderSampler[int]):
    """Give each of W processes every W-th draw; all have the same number of draws."""

    def _items(self) -> list[int]:
        return self.order(self.epoch)[: len(self) * self.num_replicas][self.rank :: self.num_replicas].tolist()

    def __len__(self) -> int:
        # Drop the remainder: processes with different numbers of steps would deadlock.
        return len(self.order) // self.num_replicas


class ClassBalancedSampler(_SampleSampler):
    """Draw all classes equally often; see :class:`~classgap.data.sampling.orders.ClassBalancedOrder`.

    With W processes, each takes every W-th draw; all have the same number of draws.

    Args:
        targets: Class of each sample, (N,).
        seed: Random seed.
        num_samples: Draws per epoch over all processes. Defaults to the number of samples.
        num_replicas: Number of processes. Defaults to the world size of ``torch.distributed``, or 1.
        rank: Rank of this process. Defaults to the rank in ``torch.distributed``, or 0.

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
        num_samples: int | None = None,
        num_replicas: int | None = None,
        rank: int | None = None,
    ) -> None:
        super().__init__(ClassBalancedOrder(targets, seed, num_samples), num_replicas, rank)


class ClassQuotaSampler(_SampleSampler):
    """Draw a given number of samples per class; see :class:`~classgap.data.sampling.orders.QuotaOrder`.

    ``classgap.functional.error_densities`` computes quotas from class errors (DRoP). With W processes, each takes every
    W-th draw; all have the same number of draws.

    Args:
        targets: Class of each sample, (N,).
        quotas: Samples of each class per epoch over all processes, nonnegative integers, (K,).
        seed: Random seed.
        num_replicas: Number of processes. Defaults to the world size of ``torch.distributed``, or 1.
        rank: Rank of this process. Defaults to the rank in ``torch.distributed``, or 0.

    >>> import torch
    >>> targets = torch.tensor([0, 0, 0, 1, 1, 1])
    >>> targets[list(ClassQuotaSampler(targets, torch.tensor([1, 3])))].bincount()
    tensor([1, 3])
    """

    def __init__(
        self,
        targets: Tensor,
        quotas: Tensor,
        *,
        seed: int = 0,
        num_replicas: int | None = None,
        rank: int | None = None,
    ) -> None:
        super().__init__(QuotaOrder(targets, quotas, seed), num_replicas, rank)


class ClassAwareBatchSampler(_OrderSampler[list[int]]):
    """Batches of a few classes, balanced; see :class:`~classgap.data.sampling.orders.ClassAwareOrder`.

    Pass it as ``batch_sampler``. With W processes, each takes complete classes of every batch.

    Args:
        targets: Class of each sample, (N,).
        per_class: Samples per class in a batch.
        classes_per_batch: Classes in a global batch, a multiple of the number of processes.
        seed: Random seed.
        num_replicas: Number of processes. Defaults to the world size of ``torch.distributed``, or 1.
        rank: Rank of this process. Defaults to the rank in ``torch.distributed``, or 0.

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
        order = ClassAwareOrder(targets, per_class, classes_per_batch, seed)
        super().__init__(order, num_replicas, rank)
        if classes_per_batch % self.num_replicas:
            raise ValueError(
                f"classes_per_batch must be a multiple of the number of processes, {self.num_replicas}, "
                f"got {classes_per_batch}."
            )
        self.batch_size = order.batch_size

    def _items(self) -> list[list[int]]:
        shard = shard_slice(self.batch_size, self.rank, self.num_replicas)
        return self.order(self.epoch).view(-1, self.batch_size)[:, shard].tolist()

    def __len__(self) -> int:
        return len(self.order) // self.batch_size
