"""Samplers for ``torch.utils.data.DataLoader``, distributed and resumable.

sampler = ClassBalancedSampler(targets)
loader = DataLoader(dataset, batch_size=128, sampler=sampler)
for epoch in range(sampler.epoch, 90):
    sampler.set_epoch(epoch)
    for images, targets in loader: ...

Number and rank of the processes are read when an epoch starts, so a sampler may be created before the process group.
Samplers of single samples are ``DistributedSampler``s: Lightning uses them as they are instead of dividing them again.
Accelerate, and with it the Hugging Face ``Trainer``, divides every sampler itself: pass ``num_replicas=1, rank=0``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Generic, Self, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DistributedSampler, Sampler

from classgap import distributed
from classgap.data.sampling.batching import shard_slice
from classgap.data.sampling.orders import ClassAwareOrder, ClassBalancedOrder, Order, QuotaOrder
from classgap.functional import error_quotas

Item = TypeVar("Item")


class _OrderSampler(Sampler[Item], ABC, Generic[Item]):
    """Iterate over this process's part of an order and track the position."""

    def __init__(self, order: Order, num_replicas: int | None, rank: int | None) -> None:
        self.order = order
        self._num_replicas, self._rank = num_replicas, rank
        self.epoch = 0
        self._start = 0
        self._position = 0
        self._check_processes()

    @property
    def num_replicas(self) -> int:
        """Number of processes."""
        return distributed.world_size() if self._num_replicas is None else self._num_replicas

    @property
    def rank(self) -> int:
        """Rank of this process."""
        return distributed.rank() if self._rank is None else self._rank

    def _check_processes(self) -> None:
        if not 0 <= self.rank < self.num_replicas:
            raise ValueError(f"rank must be in [0, {self.num_replicas - 1}], got {self.rank}.")

    @abstractmethod
    def _items(self) -> list[Item]:
        """Return this process's items of the current epoch."""

    def set_epoch(self, epoch: int) -> None:
        """Set the next epoch. A position loaded for the same epoch is kept."""
        if epoch != self.epoch:
            self.epoch, self._start, self._position = epoch, 0, 0

    def __iter__(self) -> Iterator[Item]:
        self._check_processes()
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


class _SampleSampler(_OrderSampler[int], DistributedSampler[int]):  # type: ignore[override]
    """Give each of W processes every W-th draw; all have the same number of draws."""

    drop_last = True  # the remainder that the processes cannot share equally
    shuffle = True

    @property
    def num_samples(self) -> int:  # type: ignore[override]
        """Number of draws per epoch of this process."""
        return len(self)

    @property
    def total_size(self) -> int:  # type: ignore[override]
        """Number of draws per epoch of all processes."""
        return len(self) * self.num_replicas

    def _items(self) -> list[int]:
        return self.order(self.epoch)[: len(self) * self.num_replicas][self.rank :: self.num_replicas].tolist()

    def __len__(self) -> int:
        # Drop the remainder: processes with different numbers of steps would deadlock.
        return len(self.order) // self.num_replicas


class ClassBalancedSampler(_SampleSampler):
    """Draw all classes equally often; see :class:`~classgap.data.sampling.orders.ClassBalancedOrder`.

    With W processes, each takes every W-th draw; all have the same number of draws.

    Args:
        targets: Class of each sample, (N,): a tensor, array or list.
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
        targets: Any,
        *,
        seed: int = 0,
        num_samples: int | None = None,
        num_replicas: int | None = None,
        rank: int | None = None,
    ) -> None:
        super().__init__(ClassBalancedOrder(_as_tensor(targets), seed, num_samples), num_replicas, rank)


class ClassQuotaSampler(_SampleSampler):
    """Draw a given number of samples per class; see :class:`~classgap.data.sampling.orders.QuotaOrder`.

    With W processes, each takes every W-th draw; all have the same number of draws.

    Args:
        targets: Class of each sample, (N,): a tensor, array or list.
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
        targets: Any,
        quotas: Any,
        *,
        seed: int = 0,
        num_replicas: int | None = None,
        rank: int | None = None,
    ) -> None:
        super().__init__(QuotaOrder(_as_tensor(targets), _as_tensor(quotas), seed), num_replicas, rank)

    @classmethod
    def from_errors(
        cls,
        targets: Any,
        errors: Any,
        *,
        density: float = 0.5,
        seed: int = 0,
        num_replicas: int | None = None,
        rank: int | None = None,
    ) -> Self:
        """Draw more samples of classes with more errors, by the quotas of DRoP; see :func:`functional.error_quotas`.

        Args:
            targets: Class of each sample, (N,).
            errors: Error of each class on held-out samples, in [0, 1], (K,). NaN for unknown errors.
            density: Fraction of all samples to draw per epoch, in (0, 1].
            seed: Random seed.
            num_replicas: Number of processes. Defaults to the world size of ``torch.distributed``, or 1.
            rank: Rank of this process. Defaults to the rank in ``torch.distributed``, or 0.

        >>> targets = torch.arange(3).repeat(100)
        >>> sampler = ClassQuotaSampler.from_errors(targets, [0.1, 0.2, 0.6])
        >>> targets[list(sampler)].bincount()
        tensor([ 17,  33, 100])
        """
        targets_N, errors_K = _as_tensor(targets), torch.as_tensor(errors, dtype=torch.float64)
        if errors_K.ndim != 1 or bool(((errors_K < 0) | (errors_K > 1)).any()) or bool(errors_K.isnan().all()):
            raise ValueError(f"errors must be one number in [0, 1] per class, got {errors!r}.")
        if not 0 < density <= 1:
            raise ValueError(f"density must be in (0, 1], got {density}.")
        counts_K = torch.bincount(targets_N, minlength=len(errors_K))
        if len(counts_K) > len(errors_K):
            raise ValueError(f"errors must have {len(counts_K)} entries, one per class, got {len(errors_K)}.")
        quotas_K = error_quotas(counts_K, errors_K, density)
        return cls(targets_N, quotas_K, seed=seed, num_replicas=num_replicas, rank=rank)


class ClassAwareBatchSampler(_OrderSampler[list[int]]):
    """Batches of a few classes, balanced; see :class:`~classgap.data.sampling.orders.ClassAwareOrder`.

    Pass it as ``batch_sampler``. With W processes, each takes complete classes of every batch.

    Args:
        targets: Class of each sample, (N,): a tensor, array or list.
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
        targets: Any,
        per_class: int,
        classes_per_batch: int,
        *,
        seed: int = 0,
        num_replicas: int | None = None,
        rank: int | None = None,
    ) -> None:
        order = ClassAwareOrder(_as_tensor(targets), per_class, classes_per_batch, seed)
        self.classes_per_batch = classes_per_batch
        self.batch_size = order.batch_size
        super().__init__(order, num_replicas, rank)

    @property
    def sampler(self) -> Self:
        """This sampler: trainers call ``batch_sampler.sampler.set_epoch``."""
        return self

    def _check_processes(self) -> None:
        super()._check_processes()
        if self.classes_per_batch % self.num_replicas:
            raise ValueError(
                f"classes_per_batch must be a multiple of the number of processes, {self.num_replicas}, "
                f"got {self.classes_per_batch}."
            )

    def _items(self) -> list[list[int]]:
        shard = shard_slice(self.batch_size, self.rank, self.num_replicas)
        return self.order(self.epoch).view(-1, self.batch_size)[:, shard].tolist()

    def __len__(self) -> int:
        return len(self.order) // self.batch_size


def _as_tensor(values: Any) -> Tensor:
    """Convert arrays, lists and columns of datasets."""
    return values if isinstance(values, Tensor) else torch.as_tensor(np.asarray(values))
