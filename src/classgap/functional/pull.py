"""The pull between samples of one class: MR² Eq. (2) and ELM's Ω_pull (Jitkrittum et al. 2022, Eq. 4).

Only pairs of the same class count, so samples are sorted by class and compared in blocks of rows against the short
range of columns that holds the same classes. Memory is a few blocks however large a class is, and backward computes
the blocks again instead of keeping them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from classgap.functional.class_groups import group_by_class

BLOCK_ROWS = 128  # large enough for an efficient matrix product, small enough to waste little on small classes
BLOCK_ELEMENTS = 2**21  # at most 8 MB in float32 for one block, whatever the class size


def pull(features_ND: Tensor, labels_N: Tensor, slack_B: Tensor, *, num_classes: int, first: int = 0) -> Tensor:
    """ln[1 + Σ_{x⁺ ≠ x, same class} exp(‖f - f⁺‖² - slack)] for each anchor x; 0 where a class has one sample.

    Anchors are the B rows that start at ``first``; positives are all N rows. Gradient flows to both members of a
    pair, none to the slack. Rows labelled -1 are neither anchors nor positives.

    Args:
        features_ND: features, float32 or float64.
        labels_N: class of each row, or -1.
        slack_B: how far apart a pair may be before it costs much: 2s̄ in MR², α_y in ELM.
        num_classes: K, the labels' upper bound.
        first: position of the first anchor.

    >>> f, y = torch.tensor([[0.0, 0.0], [2.0, 0.0]]), torch.tensor([0, 0])
    >>> pull(f, y, torch.full((2,), 1.0), num_classes=1)  # ln(1 + e³)
    tensor([3.0486, 3.0486])
    """
    if torch.compiler.is_compiling():
        return _dense_pull(features_ND, labels_N, slack_B.detach(), num_classes, first)
    return _Pull.apply(features_ND, labels_N, slack_B.detach(), first)


def _dense_pull(features_ND: Tensor, labels_N: Tensor, slack_B: Tensor, num_classes: int, first: int) -> Tensor:
    """The same in one B×N block with fixed shapes, for the compiler."""
    groups = group_by_class(labels_N, num_classes)
    centred_ND = features_ND - groups.spread_to_samples(groups.mean(features_ND.detach()))
    rows = slice(first, first + len(slack_B))
    position_N = torch.arange(len(labels_N), device=labels_N.device)
    pair_BN = (labels_N[rows, None] == labels_N) & (labels_N >= 0) & (position_N[rows, None] != position_N)
    excess_BN = _squared_distances(centred_ND[rows], centred_ND) - slack_B[:, None]
    excess_BN = excess_BN.masked_fill(~pair_BN, -torch.inf)
    return torch.logsumexp(torch.cat([torch.zeros_like(slack_B)[:, None], excess_BN], dim=1), dim=1)


def _squared_distances(rows_RD: Tensor, columns_CD: Tensor) -> Tensor:
    """‖r - c‖² by one matrix product; the features are centred by class, so that little cancels."""
    norms = rows_RD.square().sum(dim=1)[:, None] + columns_CD.square().sum(dim=1)
    return torch.addmm(norms, rows_RD, columns_CD.T, alpha=-2)


@dataclass(frozen=True)
class _SortedPairs:
    """The samples that have partners, sorted by class, and the blocks that hold all their pairs."""

    order_M: Tensor  # rows of the input, sorted by class; classes without pairs or anchors left out
    class_M: Tensor  # 0, 1, 2, … along the sorted rows
    anchors_A: Tensor  # which of the sorted rows are anchors
    blocks: list[tuple[slice, slice]]  # anchors × sorted rows

    @classmethod
    def of(cls, labels_N: Tensor, first: int, anchors: int) -> _SortedPairs:
        label_N, order_N = labels_N.sort(stable=True)
        start_N, end_N = _segments(label_N)
        anchor_N = (order_N >= first) & (order_N < first + anchors)
        keep_N = (label_N >= 0) & (end_N - start_N > 1)
        if anchors < len(labels_N):
            before_N = torch.cat([anchor_N.new_zeros(1, dtype=torch.long), anchor_N.cumsum(0)])
            keep_N &= before_N[end_N] > before_N[start_N]
        order_M = order_N[keep_N]
        start_M, end_M = _segments(label_N[keep_N])
        position_M = torch.arange(len(order_M), device=labels_N.device)
        class_M = (start_M == position_M).cumsum(0) - 1
        anchors_A = position_M[anchor_N[keep_N]]
        return cls(order_M, class_M, anchors_A, _blocks(start_M[anchors_A], end_M[anchors_A]))

    def centred(self, features_ND: Tensor) -> Tensor:
        """The sorted rows minus their class means: differences before squares."""
        sorted_MD = features_ND[self.order_M]
        if not len(sorted_MD):
            return sorted_MD
        counts = torch.bincount(self.class_M).to(sorted_MD.dtype)
        sums = sorted_MD.new_zeros((len(counts), sorted_MD.shape[1])).index_add_(0, self.class_M, sorted_MD)
        return sorted_MD.sub_((sums / counts[:, None])[self.class_M])

    def excesses(self, centred_MD: Tensor, slack_A: Tensor) -> Iterator[tuple[slice, Tensor, slice, Tensor]]:
        """For each block: its anchors, their rows, its columns, and ‖f - f⁺‖² - slack with -inf where no pair is."""
        position_M = torch.arange(len(self.order_M), device=self.order_M.device)
        for anchors, columns in self.blocks:
            rows = self.anchors_A[anchors]
            excess = _squared_distances(centred_MD[rows], centred_MD[columns]).sub_(slack_A[anchors, None])
            no_pair = self.class_M[rows, None] != self.class_M[columns]
            no_pair |= rows[:, None] == position_M[columns]
            yield anchors, rows, columns, excess.masked_fill_(no_pair, -torch.inf)


def _segments(sorted_M: Tensor) -> tuple[Tensor, Tensor]:
    """Where the run of equal values that each entry belongs to starts and ends."""
    return torch.searchsorted(sorted_M, sorted_M), torch.searchsorted(sorted_M, sorted_M, right=True)


def _blocks(start_A: Tensor, end_A: Tensor) -> list[tuple[slice, slice]]:
    """Cut the sorted anchors into blocks of rows, each with the range of columns that its classes span."""
    starts, ends = start_A.tolist(), end_A.tolist()
    blocks, row = [], 0
    while row < len(starts):
        stop = min(row + BLOCK_ROWS, len(starts))
        while stop - row > 1 and (stop - row) * (ends[stop - 1] - starts[row]) > BLOCK_ELEMENTS:
            stop = row + (stop - row) // 2
        blocks.append((slice(row, stop), slice(starts[row], ends[stop - 1])))
        row = stop
    return blocks


class _Pull(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features_ND: Tensor, labels_N: Tensor, slack_B: Tensor, first: int) -> Tensor:
        pairs = _SortedPairs.of(labels_N, first, len(slack_B))
        centred_MD = pairs.centred(features_ND)
        anchor_rows_A = pairs.order_M[pairs.anchors_A] - first
        slack_A = slack_B[anchor_rows_A]
        terms_A = torch.empty_like(slack_A)
        for anchors, _, _, excess in pairs.excesses(centred_MD, slack_A):
            # ln(e⁰ + Σ e^excess), shifted by the largest exponent, the 0 of the "1 +" included.
            largest = excess.amax(dim=1).clamp_(min=0)
            sums = excess.sub_(largest[:, None]).exp_().sum(dim=1)
            terms_A[anchors] = largest + (sums + (-largest).exp()).log()
        ctx.save_for_backward(centred_MD, slack_A, terms_A, anchor_rows_A)
        ctx.pairs, ctx.shape = pairs, features_ND.shape
        return torch.zeros_like(slack_B).index_copy_(0, anchor_rows_A, terms_A)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_B: Tensor) -> tuple[Tensor, None, None, None]:
        centred_MD, slack_A, terms_A, anchor_rows_A = ctx.saved_tensors
        pairs: _SortedPairs = ctx.pairs
        grad_A = grad_B[anchor_rows_A]
        grad_MD = torch.zeros_like(centred_MD)
        # d term_i / d‖f_i - f_j‖² = exp(excess_ij - term_i) = w_ij, and d‖f_i - f_j‖² / df_i = 2(f_i - f_j) = -d/df_j.
        for anchors, rows, columns, excess in pairs.excesses(centred_MD, slack_A):
            weights = excess.sub_(terms_A[anchors, None]).exp_().mul_(2 * grad_A[anchors, None])
            row_features, column_features = centred_MD[rows], centred_MD[columns]
            to_rows = torch.addmm(weights.sum(dim=1)[:, None] * row_features, weights, column_features, alpha=-1)
            to_columns = torch.addmm(weights.sum(dim=0)[:, None] * column_features, weights.T, row_features, alpha=-1)
            grad_MD[columns] += to_columns
            grad_MD.index_add_(0, rows, to_rows)
        grad_ND = grad_MD.new_zeros(ctx.shape)
        grad_ND.index_copy_(0, pairs.order_M, grad_MD)
        return grad_ND, None, None, None
