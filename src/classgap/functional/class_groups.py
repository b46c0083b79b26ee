"""Samples grouped by class, so that per-class sums cost what the classes *present* cost, not all K."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class ClassGroups:
    """Which class each group is, which group each sample is in, and how large the groups are.

    Samples without a class (label -1) have the group number U and enter no sum.
    """

    classes_U: Tensor
    group_N: Tensor
    counts_U: Tensor

    def sum(self, values: Tensor) -> Tensor:
        """Sum of ``values`` (N, ...) over each group, (U, ...); differentiable."""
        groups = len(self.classes_U)
        sums = values.new_zeros((groups + 1, *values.shape[1:]))
        return sums.index_add(0, self.group_N, values)[:groups]

    def mean(self, values: Tensor) -> Tensor:
        """Mean of ``values`` (N, ...) over each group, 0 for an empty group; differentiable."""
        counts = self.counts_U.clamp(min=1).to(values.dtype)
        return self.sum(values) / counts.view(-1, *[1] * (values.dim() - 1))

    def spread_to_samples(self, values_U: Tensor) -> Tensor:
        """Each sample's own group value, (N, ...); zeros for samples without a class."""
        nothing = values_U.new_zeros((1, *values_U.shape[1:]))
        return torch.cat([values_U, nothing])[self.group_N]


def group_by_class(labels_N: Tensor, num_classes: int) -> ClassGroups:
    """Group samples by label; labels of -1 belong to no group.

    Eager code lists only the classes present. Compiled code cannot have shapes that depend on the data, so there
    every class is a group, some of them empty.

    >>> groups = group_by_class(torch.tensor([7, 2, 7, -1]), num_classes=10)
    >>> groups.classes_U.tolist(), groups.counts_U.tolist()
    ([2, 7], [1, 2])
    >>> groups.mean(torch.tensor([1.0, 5.0, 3.0, 9.0])).tolist()
    [5.0, 2.0]
    """
    if torch.compiler.is_compiling():
        classes = torch.arange(num_classes, device=labels_N.device)
        group = torch.where(labels_N < 0, num_classes, labels_N)
        ones = torch.ones_like(group)
        counts = group.new_zeros(num_classes + 1).index_add(0, group, ones)[:num_classes]
        return ClassGroups(classes, group, counts)
    classes, group, counts = torch.unique(labels_N, return_inverse=True, return_counts=True)
    if len(classes) and classes[0] < 0:
        classes, counts = classes[1:], counts[1:]
        group = torch.where(group == 0, len(classes), group - 1)
    return ClassGroups(classes, group, counts)
