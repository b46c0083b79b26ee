"""Class statistics of the features that the bounds use: sizes, means and deviations."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from classgap.functional import ClassGroups, group_by_class, squared_norm
from classgap.theory.arguments import check_labels, check_matrix


@dataclass(frozen=True)
class ClassMoments:
    """Number of samples, ‖μ̂_k‖² and ‖ŝ_k‖² of each class; 0 for a class without samples.

    >>> moments = class_moments(torch.tensor([[0.0], [2.0], [5.0]]), torch.tensor([0, 0, 1]), 2)
    >>> moments.mean_K, moments.deviation_K, moments.size_K
    (tensor([ 1., 25.]), tensor([1., 0.]), tensor([ 2., 25.]))
    """

    counts_K: Tensor
    mean_K: Tensor
    deviation_K: Tensor

    @property
    def size_K(self) -> Tensor:
        """r_k² = ‖μ̂_k‖² + ‖ŝ_k‖², which is the class mean of ‖φ‖² by MR² Eq. (52) to (55)."""
        return self.mean_K + self.deviation_K

    @property
    def pair_distance_K(self) -> Tensor:
        """Mean squared distance between two different samples of a class; 0 for fewer than two samples.

        MR² B.2 states 2‖ŝ‖², which is exact for two independent draws and thus includes the n pairs of a sample with
        itself. Without them it is 2‖ŝ‖² n/(n - 1), as in the proof of ELM.
        """
        counts_K = self.counts_K.to(self.deviation_K.dtype)
        return 2 * self.deviation_K * counts_K / (counts_K - 1).clamp(min=1)


def class_moments(features_ND: Tensor, labels_N: Tensor, num_classes: int) -> ClassMoments:
    """Compute the counts, ‖μ̂_k‖² and ‖ŝ_k‖² = (1/n) Σ ‖φ - μ̂_k‖² of each class (MR² Sec. 3).

    >>> moments = class_moments(torch.tensor([[1.0, 0.0], [3.0, 0.0]]), torch.tensor([0, 0]), num_classes=1)
    >>> moments.mean_K, moments.deviation_K, moments.pair_distance_K
    (tensor([4.]), tensor([1.]), tensor([4.]))
    """
    features_ND = check_matrix("features_ND", features_ND)
    groups = group_by_class(check_labels(labels_N, num_classes, rows=len(features_ND)), num_classes)
    means_UD = groups.mean(features_ND)
    # Not as E‖φ‖² - ‖μ̂‖², in which a small deviation of large features cancels.
    deviation_U = groups.mean(groups.centered(features_ND).square().sum(dim=1))
    return ClassMoments(
        counts_K=_for_all_classes(groups.counts_U, groups, num_classes),
        mean_K=_for_all_classes(means_UD.square().sum(dim=1), groups, num_classes),
        deviation_K=_for_all_classes(deviation_U, groups, num_classes),
    )


def class_sizes(
    features_ND: Tensor, labels_N: Tensor, num_classes: int, *, p: float = 2.0, with_bias: bool = False
) -> tuple[Tensor, Tensor]:
    """Compute r_{k,p}², the class mean of ‖φ‖_p² (MR² Eq. 72), and the number of samples of each class.

    Args:
        features_ND: Features φ.
        labels_N: Class of each row, or -1.
        num_classes: Number of classes K.
        p: Order of the norm, from 1 to infinity.
        with_bias: Use (φ, 1) instead of φ, for a head whose bias is a weight on a constant feature.

    >>> class_sizes(torch.tensor([[3.0, 4.0]]), torch.tensor([1]), num_classes=2, p=1)
    (tensor([ 0., 49.]), tensor([0, 1]))
    """
    features_ND = check_matrix("features_ND", features_ND)
    groups = group_by_class(check_labels(labels_N, num_classes, rows=len(features_ND)), num_classes)
    size_N = squared_norm(features_ND, p)
    if with_bias:  # ‖(φ, 1)‖_p = ‖(‖φ‖_p, 1)‖_p, without a copy of the features
        size_N = squared_norm(torch.stack([size_N.sqrt(), torch.ones_like(size_N)], dim=1), p)
    size_K = _for_all_classes(groups.mean(size_N), groups, num_classes)
    return size_K, _for_all_classes(groups.counts_U, groups, num_classes)


def _for_all_classes(values_U: Tensor, groups: ClassGroups, num_classes: int) -> Tensor:
    return values_U.new_zeros(num_classes).index_copy(0, groups.classes_U, values_U)
