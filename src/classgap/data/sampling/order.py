"""In which order an epoch uses the samples: functions of (seed, epoch), for all processes together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from classgap.data.sampling.keyed_random import keyed_bits, keyed_permutation, keyed_uniform, occurrences


class Order(Protocol):
    """Which rows of a split an epoch uses, one after the other."""

    def __len__(self) -> int:
        """How many an epoch uses."""
        ...

    def __call__(self, epoch: int) -> Tensor:
        """The rows of this epoch, int64."""
        ...


@dataclass(frozen=True)
class Shuffled:
    """Every sample once.

    >>> order = Shuffled(4, seed=0)
    >>> order(0).sort().values
    tensor([0, 1, 2, 3])
    """

    n: int
    seed: int = 0

    def __len__(self) -> int:
        return self.n

    def __call__(self, epoch: int) -> Tensor:
        """The rows of this epoch."""
        return keyed_permutation(self.seed, epoch, self.n, stream="shuffle")


@dataclass(frozen=True, eq=False)
class Repeated:
    """Every sample as often as asked, shuffled: the up-sampling of Just Train Twice.

    Args:
        times_N: how often each sample is used; integers from 0.
        seed: of the order.

    >>> Repeated(torch.tensor([1, 0, 2]))(0).sort().values
    tensor([0, 2, 2])
    """

    times_N: Tensor
    seed: int = 0

    def __post_init__(self) -> None:
        if self.times_N.is_floating_point() or self.times_N.ndim != 1 or bool((self.times_N < 0).any()):
            raise ValueError("times_N must be one integer from 0 a sample; round fractions.")

    def __len__(self) -> int:
        return int(self.times_N.sum())

    def __call__(self, epoch: int) -> Tensor:
        """The rows of this epoch."""
        rows = torch.arange(len(self.times_N)).repeat_interleave(self.times_N)
        return rows[keyed_permutation(self.seed, epoch, len(rows), stream="repeat")]


@dataclass(frozen=True, eq=False)
class ClassBalanced:
    """Each draw: a class, all equally likely, then a sample of it; none of a class again before all were used.

    Args:
        targets: the class of each sample.
        seed: of the draws.
        length: draws an epoch; by default as many as there are samples.

    >>> targets = torch.tensor([0, 0, 0, 0, 0, 0, 0, 0, 0, 1])
    >>> int((targets[ClassBalanced(targets, length=1000)(0)] == 1).sum())
    464
    """

    targets: Tensor
    seed: int = 0
    length: int | None = None

    def __post_init__(self) -> None:
        _check_targets(self.targets)

    def __len__(self) -> int:
        return len(self.targets) if self.length is None else self.length

    def __call__(self, epoch: int) -> Tensor:
        """The rows of this epoch."""
        classes, class_N, count_K = self.targets.unique(return_inverse=True, return_counts=True)
        point = keyed_uniform(self.seed, epoch, torch.arange(len(self)), 1, stream="class", dtype=torch.float64)
        return _samples_of(class_N, count_K, (point[:, 0] * len(classes)).long(), count_K, self.seed, epoch)


@dataclass(frozen=True, eq=False)
class ClassAware:
    """Batches of a few classes with equally many samples of each, which lie side by side.

    A batch has no sample twice if its classes have ``per_class`` samples. An epoch has as many batches as fit into the
    samples, at least one. Use it with batches of ``per_class * classes_per_batch``.

    Args:
        targets: the class of each sample.
        per_class: samples of each class in a batch.
        classes_per_batch: different classes in a batch.
        seed: of the draws.

    >>> targets = torch.tensor([0, 0, 0, 1, 1, 1, 2, 2, 2])
    >>> order = ClassAware(targets, per_class=2, classes_per_batch=2)
    >>> targets[order(0)].view(-1, order.batch_size)
    tensor([[2, 2, 0, 0],
            [0, 0, 1, 1]])
    """

    targets: Tensor
    per_class: int
    classes_per_batch: int
    seed: int = 0

    def __post_init__(self) -> None:
        _check_targets(self.targets)
        present = len(self.targets.unique())
        if self.per_class < 1:
            raise ValueError(f"per_class must be at least 1; got {self.per_class}.")
        if not 1 <= self.classes_per_batch <= present:
            raise ValueError(
                f"classes_per_batch must be from 1 to the {present} classes that have samples; "
                f"got {self.classes_per_batch}."
            )

    @property
    def batch_size(self) -> int:
        """Samples of a batch."""
        return self.per_class * self.classes_per_batch

    def __len__(self) -> int:
        return max(len(self.targets) // self.batch_size, 1) * self.batch_size

    def __call__(self, epoch: int) -> Tensor:
        """The rows of this epoch."""
        classes, class_N, count_K = self.targets.unique(return_inverse=True, return_counts=True)
        batches = torch.arange(len(self) // self.batch_size)
        lottery = keyed_bits(self.seed, epoch, batches, len(classes), stream="classes")
        chosen = lottery.argsort(dim=1)[:, : self.classes_per_batch]
        # A pass over a class ends where its next group of m would need samples of two passes, and might repeat one.
        pass_K = torch.where(count_K >= self.per_class, count_K - count_K % self.per_class, count_K)
        drawn = chosen.flatten().repeat_interleave(self.per_class)
        return _samples_of(class_N, count_K, drawn, pass_K, self.seed, epoch)


def _samples_of(class_N: Tensor, count_K: Tensor, drawn_L: Tensor, pass_K: Tensor, seed: int, epoch: int) -> Tensor:
    """A sample for each drawn class: a class's samples in random order, in another one each time they are used up.

    Args:
        class_N: class of each sample, every class has one.
        count_K: samples of each class.
        drawn_L: the classes, in the order of the draws.
        pass_K: how many samples of a pass over a class are used.
        seed: of the run.
        epoch: from 0.
    """
    passes_K = -(-torch.bincount(drawn_L, minlength=len(count_K)) // pass_K)
    times_N = passes_K[class_N]
    rows = torch.arange(len(class_N)).repeat_interleave(times_N)
    pass_number = occurrences(rows)
    # The order within a pass depends on the sample and the number of the pass alone: a longer epoch begins the same.
    lottery = keyed_bits(seed, epoch, rows + (pass_number << 40), 1, stream="within class")[:, 0]
    by_lottery = lottery.argsort(stable=True)
    group = class_N[rows] * (int(passes_K.max()) + 1) + pass_number
    rows = rows[by_lottery[group[by_lottery].argsort(stable=True)]]
    first_K = (passes_K * count_K).cumsum(0) - passes_K * count_K
    number_L = occurrences(drawn_L)
    used = pass_K[drawn_L]
    return rows[first_K[drawn_L] + number_L // used * count_K[drawn_L] + number_L % used]


def _check_targets(targets_N: Tensor) -> None:
    if targets_N.ndim != 1 or targets_N.is_floating_point() or len(targets_N) == 0:
        raise ValueError(
            f"targets must be the integer class of each sample, at least one; got {tuple(targets_N.shape)} "
            f"of {targets_N.dtype}."
        )


def count_batches(samples: int, batch_size: int, world: int = 1) -> int:
    """How many batches ``batches_of`` makes of so many samples.

    >>> count_batches(10, 4), count_batches(9, 4)
    (3, 2)
    """
    if batch_size < world or world < 1:
        raise ValueError(
            f"batch_size, which all {world} process(es) share, must be at least their number; got {batch_size}."
        )
    full, rest = divmod(samples, batch_size)
    # Not a matter of the processes: their number must not change what is computed.
    return full + (rest >= max(2, batch_size / 4) or (full == 0 and rest > 0))


def batches_of(rows: Tensor, batch_size: int, world: int = 1) -> list[Tensor]:
    """An epoch in batches of all processes together.

    The last, shorter batch is kept, unless it is less than a quarter of the others: a few samples, perhaps one a
    process, would spoil the statistics of batch norm. It is kept even then if it is the only one.

    Args:
        rows: of the epoch.
        batch_size: of all processes together.
        world: number of processes.

    >>> batches_of(torch.arange(9), 4)
    [tensor([0, 1, 2, 3]), tensor([4, 5, 6, 7])]
    """
    return list(rows.split(batch_size)[: count_batches(len(rows), batch_size, world)])


def share_of(samples: int, rank: int, world: int) -> slice:
    """The part of one process: contiguous, as even as possible, in process order.

    >>> share_of(5, 0, 2), share_of(5, 1, 2)
    (slice(0, 2, None), slice(2, 5, None))
    """
    return slice(samples * rank // world, samples * (rank + 1) // world)
