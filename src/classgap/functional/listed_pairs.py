"""A list of all same-class pairs of a batch, with differences and distances, for batches with few of them.

Both the pull between samples and the spread of the classes use these distances, so they share one list.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from classgap.functional.class_groups import ClassGroups

SQUARE_ELEMENTS = 2**15  # comparing all pairs is faster than sorting up to this number
LISTED_PAIRS = 2**20  # limit (16 MB) on pairs of all processes, before those without a local anchor are removed
LISTED_ELEMENTS = 2**20  # limit on the size of their differences, 4 MB in float32


@dataclass(frozen=True)
class ListedPairs:
    """All pairs of samples of one class that include an anchor, each once; without gradient."""

    one_P: Tensor  # rows
    other_P: Tensor
    difference_PD: Tensor
    distance_P: Tensor  # ‖f - f⁺‖²

    def sums(self, groups: ClassGroups) -> Tensor:
        """Sum ‖f - f⁺‖² over the pairs of each group, (U,).

        >>> from classgap.functional import group_by_class
        >>> groups = group_by_class(torch.tensor([0, 0, 1]), num_classes=2)
        >>> list_pairs(torch.tensor([[1.0], [5.0], [9.0]]), groups, anchors=3).sums(groups)
        tensor([16.,  0.])
        """
        sums_U = self.distance_P.new_zeros(len(groups.classes_U))
        return sums_U.index_add_(0, groups.group_N.index_select(0, self.one_P), self.distance_P)


def list_pairs(features_ND: Tensor, groups: ClassGroups, *, anchors: int, first: int = 0) -> ListedPairs | None:
    """List the pairs of the ``anchors`` rows from ``first`` on; None if there are too many.

    >>> from classgap.functional import group_by_class
    >>> f, groups = torch.tensor([[1.0], [5.0], [4.0]]), group_by_class(torch.tensor([4, 7, 4]), num_classes=9)
    >>> pairs = list_pairs(f, groups, anchors=3)
    >>> pairs.one_P.tolist(), pairs.other_P.tolist(), pairs.distance_P.tolist()
    ([0], [2], [9.0])
    """
    if torch.compiler.is_compiling():
        return None
    samples, most = len(features_ND), LISTED_ELEMENTS // max(features_ND.shape[1], 1)
    # Pairs without an anchor are removed after listing.
    at_first = most if anchors == samples else LISTED_PAIRS
    rows = _in_square(groups) if samples**2 <= SQUARE_ELEMENTS else _in_sorted(groups, most=at_first)
    if rows is None:
        return None
    one_P, other_P = rows
    if anchors < samples:
        last = first + anchors
        wanted_P = (one_P >= first) & (one_P < last) | (other_P >= first) & (other_P < last)
        kept_P = wanted_P.nonzero().squeeze(1)  # one read from the device; each boolean mask would need its own
        one_P, other_P = one_P.index_select(0, kept_P), other_P.index_select(0, kept_P)
    if len(one_P) > most:
        return None
    features_ND = features_ND.detach()
    difference_PD = features_ND.index_select(0, one_P).sub_(features_ND.index_select(0, other_P))
    return ListedPairs(one_P, other_P, difference_PD, torch.linalg.vector_norm(difference_PD, dim=1).square_())


def _in_square(groups: ClassGroups) -> tuple[Tensor, Tensor]:
    """Find the pairs by comparing all samples with all."""
    pair_NN = (groups.group_N[:, None] == groups.group_N).triu_(diagonal=1)
    if not groups.complete:
        pair_NN &= groups.group_N < len(groups.classes_U)
    one_P, other_P = pair_NN.nonzero().unbind(dim=1)
    return one_P, other_P


def _in_sorted(groups: ClassGroups, *, most: int) -> tuple[Tensor, Tensor] | None:
    """Find the pairs by sorting, for any number of samples; None if there are more than ``most``."""
    # Sorted by class, each sample is paired with the samples of its class that follow it.
    sorted_N, order_N = groups.group_N.sort(stable=True)
    end_N = torch.searchsorted(sorted_N, sorted_N, right=True)  # end of each sample's class
    following_N = end_N - torch.arange(1, len(end_N) + 1, device=end_N.device)
    if not groups.complete:
        following_N.masked_fill_(sorted_N == len(groups.classes_U), 0)
    total_N = following_N.cumsum(dim=0)
    pairs = int(total_N[-1])
    if pairs > most:
        return None
    one_P = torch.repeat_interleave(following_N, output_size=pairs)
    # The last pair of a sample, index total - 1, is with the last sample of its class, index end - 1.
    other_P = (end_N - total_N).index_select(0, one_P) + torch.arange(pairs, device=one_P.device)
    return order_N.index_select(0, one_P), order_N.index_select(0, other_P)
