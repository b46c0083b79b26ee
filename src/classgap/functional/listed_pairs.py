"""The pairs of one class in a batch that has few of them: a list, with differences and distances.

Both the pull between samples and the spread of the classes are made of these distances, so one list serves both.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from classgap.functional.class_groups import ClassGroups

SQUARE_ELEMENTS = 2**15  # a square of samples up to this size is looked through sooner than sorted
LISTED_PAIRS = 2**20  # of several processes' samples up to so many are listed, 16 MB, before those of others leave
LISTED_ELEMENTS = 2**20  # and their differences kept up to this size, 4 MB in float32


@dataclass(frozen=True)
class ListedPairs:
    """Every two samples of one class, once, where at least one of them is an anchor; without gradient."""

    one_P: Tensor  # rows
    other_P: Tensor
    difference_PD: Tensor
    distance_P: Tensor  # ‖f - f⁺‖²

    def sums(self, groups: ClassGroups) -> Tensor:
        """Σ‖f - f⁺‖² over the pairs of each group, (U,).

        >>> from classgap.functional import group_by_class
        >>> groups = group_by_class(torch.tensor([0, 0, 1]), num_classes=2)
        >>> list_pairs(torch.tensor([[1.0], [5.0], [9.0]]), groups, anchors=3).sums(groups)
        tensor([16.,  0.])
        """
        sums_U = self.distance_P.new_zeros(len(groups.classes_U))
        return sums_U.index_add_(0, groups.group_N.index_select(0, self.one_P), self.distance_P)


def list_pairs(features_ND: Tensor, groups: ClassGroups, *, anchors: int, first: int = 0) -> ListedPairs | None:
    """The pairs of the anchors, which are the rows from ``first`` on; nothing if they are too many to list.

    >>> from classgap.functional import group_by_class
    >>> f, groups = torch.tensor([[1.0], [5.0], [4.0]]), group_by_class(torch.tensor([4, 7, 4]), num_classes=9)
    >>> pairs = list_pairs(f, groups, anchors=3)
    >>> pairs.one_P.tolist(), pairs.other_P.tolist(), pairs.distance_P.tolist()
    ([0], [2], [9.0])
    """
    if torch.compiler.is_compiling():
        return None
    samples, most = len(features_ND), LISTED_ELEMENTS // max(features_ND.shape[1], 1)
    # Pairs without an anchor leave only once they are listed.
    at_first = most if anchors == samples else LISTED_PAIRS
    rows = _in_square(groups) if samples**2 <= SQUARE_ELEMENTS else _in_sorted(groups, most=at_first)
    if rows is None:
        return None
    one_P, other_P = rows
    if anchors < samples:
        last = first + anchors
        wanted_P = (one_P >= first) & (one_P < last) | (other_P >= first) & (other_P < last)
        kept_P = wanted_P.nonzero().squeeze(1)  # once: masks would be read from the device for each of the two
        one_P, other_P = one_P.index_select(0, kept_P), other_P.index_select(0, kept_P)
    if len(one_P) > most:
        return None
    features_ND = features_ND.detach()
    difference_PD = features_ND.index_select(0, one_P).sub_(features_ND.index_select(0, other_P))
    return ListedPairs(one_P, other_P, difference_PD, torch.linalg.vector_norm(difference_PD, dim=1).square_())


def _in_square(groups: ClassGroups) -> tuple[Tensor, Tensor]:
    """The rows of every two samples of one class, by comparing all with all."""
    pair_NN = (groups.group_N[:, None] == groups.group_N).triu_(diagonal=1)
    if not groups.complete:
        pair_NN &= groups.group_N < len(groups.classes_U)
    one_P, other_P = pair_NN.nonzero().unbind(dim=1)
    return one_P, other_P


def _in_sorted(groups: ClassGroups, *, most: int) -> tuple[Tensor, Tensor] | None:
    """The same by sorting, for any number of samples; nothing if there are more pairs than ``most``."""
    # In the order of the classes a sample's partners are next to it, and it is paired with those that follow.
    sorted_N, order_N = groups.group_N.sort(stable=True)
    end_N = torch.searchsorted(sorted_N, sorted_N, right=True)  # of each sample's class
    following_N = end_N - torch.arange(1, len(end_N) + 1, device=end_N.device)
    if not groups.complete:
        following_N.masked_fill_(sorted_N == len(groups.classes_U), 0)
    total_N = following_N.cumsum(dim=0)
    pairs = int(total_N[-1])
    if pairs > most:
        return None
    one_P = torch.repeat_interleave(following_N, output_size=pairs)
    # A sample's last pair, number total - 1, is with the last of its class, number end - 1.
    other_P = (end_N - total_N).index_select(0, one_P) + torch.arange(pairs, device=one_P.device)
    return order_N.index_select(0, one_P), order_N.index_select(0, other_P)
