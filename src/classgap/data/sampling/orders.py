"""Orders: the rows that an epoch uses, as a function of (seed, epoch), for all processes together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from classgap.data.sampling.keyed_random import cumcount, keyed_bits, keyed_permutation, keyed_uniform


class Order(Protocol):
    """Rows of a split in the order in which an epoch uses them."""

    def __len__(self) -> int:
        """Number of samples per epoch."""
        ...

    def __call__(self, epoch: int) -> Tensor:
        """Return the rows of an epoch, int64."""
        ...


@dataclass(frozen=True)
class RandomOrder:
    """Every sample once, shuffled.

    Args:
        num_samples: Size of the split.
        seed: Random seed.

    >>> order = RandomOrder(4, seed=0)
    >>> order(0).sort().values
    tensor([0, 1, 2, 3])
    """

    num_samples: int
    seed: int = 0

    def __len__(self) -> int:
        return self.num_samples

    def __call__(self, epoch: int) -> Tensor:
        """Return the rows of an epoch."""
        return keyed_permutation(self.seed, epoch, self.num_samples, stream="shuffle")


@dataclass(frozen=True, eq=False)
class RepeatedOrder:
    """Each sample a given number of times, shuffled: the upsampling of Just Train Twice.

    Args:
        repeats: How often to use each sample, nonnegative integers, (N,).
        seed: Random seed.

    >>> RepeatedOrder(torch.tensor([1, 0, 2]))(0).sort().values
    tensor([0, 2, 2])
    """

    repeats: Tensor
    seed: int = 0

    def __post_init__(self) -> None:
        if self.repeats.is_floating_point() or self.repeats.ndim != 1 or bool((self.repeats < 0).any()):
            raise ValueError(
                f"repeats must be one nonnegative integer per sample, got {self.repeats.dtype} of shape "
                f"{tuple(self.repeats.shape)}."
            )

    def __len__(self) -> int:
        return int(self.repeats.sum())

    def __call__(self, epoch: int) -> Tensor:
        """Return the rows of an epoch."""
        rows = torch.arange(len(self.repeats)).repeat_interleave(self.repeats)
        return rows[keyed_permutation(self.seed, epoch, len(rows), stream="repeat")]


@dataclass(frozen=True, eq=False)
class ClassBalancedOrder:
    """Draw a class uniformly, then one of its samples.

    Within a class, samples are drawn without replacement until all have been used.

    Args:
        targets: Class of each sample, (N,).
        seed: Random seed.
        num_samples: Draws per epoch. Defaults to the number of samples.

    >>> targets = torch.tensor([0, 0, 0, 0, 0, 0, 0, 0, 0, 1])
    >>> int((targets[ClassBalancedOrder(targets, num_samples=1000)(0)] == 1).sum())
    464
    """

    targets: Tensor
    seed: int = 0
    num_samples: int | None = None

    def __post_init__(self) -> None:
        _check_targets(self.targets)

    def __len__(self) -> int:
        return len(self.targets) if self.num_samples is None else self.num_samples

    def __call__(self, epoch: int) -> Tensor:
        """Return the rows of an epoch."""
        classes, class_N, count_K = self.targets.unique(return_inverse=True, return_counts=True)
        point = keyed_uniform(self.seed, epoch, torch.arange(len(self)), 1, stream="class", dtype=torch.float64)
        return _draw_samples(class_N, count_K, (point[:, 0] * len(classes)).long(), count_K, self.seed, epoch)


@dataclass(frozen=True, eq=False)
class QuotaOrder:
    """A given number of samples per class, drawn again for each epoch and shuffled.

    Within a class, samples are drawn without replacement until all have been used.

    Args:
        targets: Class of each sample, (N,).
        quotas: Samples of each class per epoch, nonnegative integers, (K,).
        seed: Random seed.

    >>> targets = torch.tensor([0, 0, 0, 0, 1, 1])
    >>> targets[QuotaOrder(targets, torch.tensor([1, 3]))(0)].bincount()
    tensor([1, 3])
    """

    targets: Tensor
    quotas: Tensor
    seed: int = 0

    def __post_init__(self) -> None:
        _check_targets(self.targets)
        quotas, needed = self.quotas, int(self.targets.max()) + 1
        if quotas.is_floating_point() or quotas.ndim != 1 or len(quotas) < needed or bool((quotas < 0).any()):
            raise ValueError(
                f"quotas must be one nonnegative integer for each of {needed} classes, got {quotas.dtype} of shape "
                f"{tuple(quotas.shape)}."
            )
        empty = (quotas > 0) & (torch.bincount(self.targets, minlength=len(quotas)) == 0)
        if bool(empty.any()):
            number = int(empty.nonzero()[0])
            raise ValueError(f"quotas must be 0 for classes without samples, got {int(quotas[number])} for {number}.")

    def __len__(self) -> int:
        return int(self.quotas.sum())

    def __call__(self, epoch: int) -> Tensor:
        """Return the rows of an epoch."""
        classes, class_N, count_K = self.targets.unique(return_inverse=True, return_counts=True)
        drawn = torch.arange(len(classes)).repeat_interleave(self.quotas[classes])
        drawn = drawn[keyed_permutation(self.seed, epoch, len(drawn), stream="quota")]
        return _draw_samples(class_N, count_K, drawn, count_K, self.seed, epoch)


@dataclass(frozen=True, eq=False)
class ClassAwareOrder:
    """Batches with the same number of samples from each of a few classes, grouped by class.

    Use it with batches of ``per_class * classes_per_batch`` samples. An epoch has as many full batches as fit into the
    split, at least one. A batch repeats a sample only if its class has fewer than ``per_class``.

    Args:
        targets: Class of each sample, (N,).
        per_class: Samples per class in a batch.
        classes_per_batch: Classes in a batch.
        seed: Random seed.

    >>> targets = torch.tensor([0, 0, 0, 1, 1, 1, 2, 2, 2])
    >>> order = ClassAwareOrder(targets, per_class=2, classes_per_batch=2)
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
            raise ValueError(f"per_class must be at least 1, got {self.per_class}.")
        if not 1 <= self.classes_per_batch <= present:
            raise ValueError(
                f"classes_per_batch must be between 1 and {present}, the number of classes with samples, "
                f"got {self.classes_per_batch}."
            )

    @property
    def batch_size(self) -> int:
        """Samples per batch."""
        return self.per_class * self.classes_per_batch

    def __len__(self) -> int:
        return max(len(self.targets) // self.batch_size, 1) * self.batch_size

    def __call__(self, epoch: int) -> Tensor:
        """Return the rows of an epoch."""
        classes, class_N, count_K = self.targets.unique(return_inverse=True, return_counts=True)
        batches = torch.arange(len(self) // self.batch_size)
        lottery = keyed_bits(self.seed, epoch, batches, len(classes), stream="classes")
        chosen = lottery.argsort(dim=1)[:, : self.classes_per_batch]
        # End a pass over a class before a group would mix samples of two passes, which could repeat one.
        pass_K = torch.where(count_K >= self.per_class, count_K - count_K % self.per_class, count_K)
        drawn = chosen.flatten().repeat_interleave(self.per_class)
        return _draw_samples(class_N, count_K, drawn, pass_K, self.seed, epoch)


def _draw_samples(class_N: Tensor, count_K: Tensor, drawn_L: Tensor, pass_K: Tensor, seed: int, epoch: int) -> Tensor:
    """Draw a sample for each drawn class, reshuffling a class after each pass over it.

    Args:
        class_N: Class of each sample; no class is empty.
        count_K: Samples per class.
        drawn_L: Classes in the order of the draws.
        pass_K: Samples used in one pass over a class.
        seed: Random seed.
        epoch: Epoch, from 0.
    """
    passes_K = -(-torch.bincount(drawn_L, minlength=len(count_K)) // pass_K)
    repeats_N = passes_K[class_N]
    rows = torch.arange(len(class_N)).repeat_interleave(repeats_N)
    pass_number = cumcount(rows)
    # The order within a pass depends only on the sample and the pass, so a longer epoch starts with the same draws.
    lottery = keyed_bits(seed, epoch, rows + (pass_number << 40), 1, stream="within class")[:, 0]
    by_lottery = lottery.argsort(stable=True)
    group = class_N[rows] * (int(passes_K.max()) + 1) + pass_number
    rows = rows[by_lottery[group[by_lottery].argsort(stable=True)]]
    first_K = (passes_K * count_K).cumsum(0) - passes_K * count_K
    number_L = cumcount(drawn_L)
    used = pass_K[drawn_L]
    return rows[first_K[drawn_L] + number_L // used * count_K[drawn_L] + number_L % used]


def _check_targets(targets_N: Tensor) -> None:
    if targets_N.ndim != 1 or targets_N.is_floating_point() or len(targets_N) == 0:
        raise ValueError(
            f"targets must be a non-empty 1-D tensor of integer classes, got {targets_N.dtype} of shape "
            f"{tuple(targets_N.shape)}."
        )
