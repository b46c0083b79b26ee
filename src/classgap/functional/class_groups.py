"""Samples grouped by class, so that the cost of per-class sums depends on the classes *present*, not on all K."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class ClassGroups:
    """The class and size of each group, and the group of each sample.

    Samples without a class (label -1) have the group index U and are excluded from all sums.

    >>> groups = group_by_class(torch.tensor([2, 0, 2]), num_classes=3)
    >>> groups.classes_U.tolist(), groups.sum(torch.tensor([1.0, 5.0, 3.0])).tolist()
    ([0, 2], [5.0, 4.0])
    """

    classes_U: Tensor
    group_N: Tensor
    counts_U: Tensor
    complete: bool  # whether every sample has a class

    def sum(self, values: Tensor) -> Tensor:
        """Sum ``values``, (N,) or (N, D), over each group; differentiable."""
        groups = len(self.classes_U)
        sums = values.new_zeros((groups if self.complete else groups + 1, *values.shape[1:]))
        sums.index_add_(0, self.group_N, values)
        return sums if self.complete else sums[:groups]

    def mean(self, values: Tensor) -> Tensor:
        """Average ``values``, (N,) or (N, D), over each group; 0 for an empty group; differentiable."""
        counts = self.counts_U.clamp(min=1)
        return self.sum(values) / (counts if values.dim() == 1 else counts[:, None])

    def of_samples(self, values: Tensor, rows: slice = slice(None)) -> Tensor:
        """Return the value of each sample's group, for all samples or some ``rows``; 0 for samples without a class."""
        if not self.complete:
            values = torch.cat([values, values.new_zeros((1, *values.shape[1:]))])
        return values.index_select(0, self.group_N[rows])

    def of_classes(self, values_K: Tensor) -> Tensor:
        """Select the entries of the groups from a tensor with one entry per class."""
        return values_K if len(self.classes_U) == len(values_K) else values_K.index_select(0, self.classes_U)

    def centered(self, values: Tensor) -> Tensor:
        """Subtract the mean of the group from each sample; the means carry no gradient."""
        counts_N1 = self.of_samples(self.counts_U).clamp(min=1)[:, None]
        return values - self.of_samples(self.sum(values.detach())).div_(counts_N1)

    def sample_factors(self, weights: Tensor, rows: slice = slice(None)) -> Tensor:
        """Return factors of the terms of ``rows`` that make their mean over all samples Σ_c w_c (mean of class c)."""
        return self.of_samples(weights * self.counts_U.sum() / self.counts_U.clamp(min=1), rows)

    def with_partners(self) -> tuple[Tensor, ClassGroups]:
        """Return the samples that are not alone in their class, and the groups of these samples."""
        rows_M = self.of_samples(self.counts_U > 1).nonzero().squeeze(1)
        group_M = self.group_N.index_select(0, rows_M)
        return rows_M, ClassGroups(self.classes_U, group_M, self.counts_U, complete=True)


def group_by_class(labels_N: Tensor, num_classes: int, *, complete: bool = False) -> ClassGroups:
    """Group samples by label; samples labeled -1 belong to no group.

    In eager mode groups are the classes present. Compiled code cannot have shapes that depend on the data, so every
    class is a group and some groups may be empty.

    Args:
        labels_N: Class of each sample, or -1.
        num_classes: Number of classes K.
        complete: Whether it is known that no label is -1, which saves a read from the device.

    >>> groups = group_by_class(torch.tensor([7, 2, 7, -1]), num_classes=10)
    >>> groups.classes_U.tolist(), groups.counts_U.tolist()
    ([2, 7], [1, 2])
    >>> groups.mean(torch.tensor([1.0, 5.0, 3.0, 9.0])).tolist()
    [5.0, 2.0]
    """
    if torch.compiler.is_compiling():
        return group_by_every_class(labels_N, num_classes)
    classes, group, counts = torch.unique(labels_N, return_inverse=True, return_counts=True)
    complete = complete or not len(classes) or classes[0].item() >= 0
    if not complete:
        classes, counts = classes[1:], counts[1:]
        group = torch.where(group == 0, len(classes), group - 1)
    return ClassGroups(classes, group, counts, complete)


def group_by_every_class(labels_N: Tensor, num_classes: int, *, complete: bool = False) -> ClassGroups:
    """Group samples by label with one group per class, some possibly empty.

    It never reads from the device, and is the fastest way if few sums are needed.

    Args:
        labels_N: Class of each sample, or -1.
        num_classes: Number of classes K.
        complete: Whether it is known that no label is -1.

    >>> group_by_every_class(torch.tensor([3, 1, 3]), num_classes=4).mean(torch.tensor([1.0, 5.0, 3.0])).tolist()
    [0.0, 5.0, 0.0, 2.0]
    """
    classes_K = torch.arange(num_classes, device=labels_N.device)
    group_N = labels_N if complete else torch.where(labels_N < 0, num_classes, labels_N)
    counts = group_N.new_zeros(num_classes if complete else num_classes + 1)
    counts = counts.index_add(0, group_N, torch.ones_like(group_N))
    return ClassGroups(classes_K, group_N, counts[:num_classes], complete)
