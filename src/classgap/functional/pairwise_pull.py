"""The pull between samples of one class: MR² Eq. (2) and ELM's Ω_pull (Jitkrittum et al. 2022, Eq. 4).

Only same-class pairs count. The fastest way to visit them depends on their number:

- few (the usual batch): list them and take differences (:mod:`classgap.functional.listed_pairs`);
- many: sort by class and compare blocks of rows with the range of columns of the same classes, by matrix products.
  Memory is limited to a few blocks for any class size, and backward recomputes the blocks;
- compiled code, whose shapes must not depend on the data: all pairs, masked.

The last two compute distances by matrix products, which ``torch.set_float32_matmul_precision`` below "highest" rounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from classgap.functional.class_groups import ClassGroups
from classgap.functional.listed_pairs import ListedPairs, list_pairs

BLOCK_ROWS = 128  # large enough for efficient matrix products, small enough for small classes
BLOCK_ELEMENTS = 2**21  # at most 8 MB in float32 per block, for any class size


class Pull(NamedTuple):
    """Terms of the pull, and the force with which each of them shrinks all features."""

    terms_B: Tensor
    force_B: Tensor


def pull(features_ND: Tensor, groups: ClassGroups, slack_B: Tensor, *, first: int = 0) -> Tensor:
    """ln[1 + Σ_{x⁺ ≠ x, same class} exp(‖f - f⁺‖² - slack)] for each anchor x; 0 for a class of one sample.

    Anchors are the B rows from ``first`` on; positives are all N rows. Both members of a pair receive gradients, the
    slack does not. Samples without a class are neither anchors nor positives.

    Args:
        features_ND: Features, float32 or float64.
        groups: Classes of the N rows.
        slack_B: Squared distance of a pair up to which the term is small: 2s̄ in MR², α_y in ELM.
        first: Position of the first anchor.

    >>> from classgap.functional import group_by_class
    >>> f, groups = torch.tensor([[0.0, 0.0], [2.0, 0.0]]), group_by_class(torch.tensor([0, 0]), num_classes=1)
    >>> pull(f, groups, torch.full((2,), 1.0))  # ln(1 + e³)
    tensor([3.0486, 3.0486])
    """
    return pull_with_force(features_ND, groups, slack_B, first=first).terms_B


def pull_with_force(
    features_ND: Tensor, groups: ClassGroups, slack_B: Tensor, *, first: int = 0, pairs: ListedPairs | None = None
) -> Pull:
    """Compute :func:`pull` and the derivative of each term with respect to the log scale of the features.

    With w the softmax of {0, ‖f - f⁺‖² - slack} this force is 2 Σ w ‖f - f⁺‖². It carries no gradient. Pass ``pairs``
    if the pairs of the features have already been listed.

    >>> from classgap.functional import group_by_class
    >>> f, groups = torch.tensor([[0.0, 0.0], [2.0, 0.0]]), group_by_class(torch.tensor([0, 0]), num_classes=1)
    >>> pull_with_force(f, groups, torch.full((2,), 4.0)).force_B  # two exponents of 0: w = 1/2
    tensor([4., 4.])
    """
    slack_B = slack_B.detach()
    if torch.compiler.is_compiling():
        return _masked_pull(groups.centered(features_ND), groups, slack_B, first)
    pairs = pairs or list_pairs(features_ND, groups, anchors=len(slack_B), first=first)
    if pairs is not None:
        return Pull(*_ListedPull.apply(features_ND, pairs, slack_B, first))
    # Centering limits cancellation in the matrix product from which distances are computed.
    return Pull(*_SortedPull.apply(groups.centered(features_ND), groups, slack_B, first))


def _masked_pull(centered_ND: Tensor, groups: ClassGroups, slack_B: Tensor, first: int) -> Pull:
    rows = slice(first, first + len(slack_B))
    pair_BN = groups.group_N[rows, None] == groups.group_N
    pair_BN &= groups.group_N < len(groups.classes_U)
    torch.diagonal(pair_BN, offset=first).fill_(False)
    distance_BN = _squared_distances(centered_ND[rows], centered_ND)
    excess_BN = (distance_BN - slack_B[:, None]).masked_fill(~pair_BN, -torch.inf)
    # The "1 +" of the formula is an additional column, e⁰.
    terms_B = torch.logsumexp(torch.cat([excess_BN, torch.zeros_like(slack_B)[:, None]], dim=1), dim=1)
    weight_BN = (excess_BN - terms_B[:, None]).detach().exp()
    return Pull(terms_B, 2 * (weight_BN * distance_BN.detach()).sum(dim=1))


class _ListedPull(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, features_ND: Tensor, pairs: ListedPairs, slack_B: Tensor, first: int
    ) -> tuple[Tensor, Tensor]:
        # Each pair appears twice below, in the terms of both of its samples.
        row_Q = torch.cat([pairs.one_P, pairs.other_P])
        distance_Q = pairs.distance_P.repeat(2)
        slack_N = _padded(slack_B, first, len(features_ND))
        excess_Q = distance_Q - slack_N.index_select(0, row_Q)
        # ln(e⁰ + Σ e^excess), shifted by the largest exponent including the 0 of the "1 +".
        largest_N = torch.zeros_like(slack_N).scatter_reduce_(0, row_Q, excess_Q, "amax")
        weight_Q = excess_Q.sub_(largest_N.index_select(0, row_Q)).exp_()
        sums_N = largest_N.neg().exp_().index_add_(0, row_Q, weight_Q)
        weight_Q.div_(sums_N.index_select(0, row_Q))
        force_N = torch.zeros_like(slack_N).index_add_(0, row_Q, distance_Q.mul_(weight_Q), alpha=2)
        ctx.save_for_backward(pairs.difference_PD, weight_Q, row_Q)
        ctx.shape, ctx.first = features_ND.shape, first
        anchors = slice(first, first + len(slack_B))
        # Copies: callers could not change views created here in place.
        terms_B, force_B = sums_N[anchors].log() + largest_N[anchors], force_N[anchors].clone()
        ctx.mark_non_differentiable(force_B)
        return terms_B, force_B

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_B: Tensor, _: Tensor) -> tuple[Tensor, None, None, None]:
        difference_PD, weight_Q, row_Q = ctx.saved_tensors
        one_P, other_P = row_Q.chunk(2)
        # d term_i / d‖f_i - f_j‖² = weight_ij, and d‖f_i - f_j‖² / df_i = 2(f_i - f_j) = -d/df_j.
        grad_N = _padded(grad_B, ctx.first, ctx.shape[0])  # only anchors have terms
        weight_P = (weight_Q * grad_N.index_select(0, row_Q)).view(2, -1).sum(dim=0)
        push_PD = difference_PD * weight_P[:, None]
        grad_ND = push_PD.new_zeros(ctx.shape).index_add_(0, one_P, push_PD, alpha=2)
        return grad_ND.index_add_(0, other_P, push_PD, alpha=-2), None, None, None


def _padded(values_B: Tensor, first: int, samples: int) -> Tensor:
    """Pad the values of the anchors with 0 for the other samples."""
    after = samples - first - len(values_B)
    return F.pad(values_B, (first, after)) if first or after else values_B


def _squared_distances(rows_RD: Tensor, columns_CD: Tensor) -> Tensor:
    norms = rows_RD.square().sum(dim=1)[:, None] + columns_CD.square().sum(dim=1)
    return torch.addmm(norms, rows_RD, columns_CD.T, alpha=-2)


@dataclass(frozen=True)
class _SortedPairs:
    """The samples with positives, sorted by class, and the blocks that contain all their pairs."""

    order_M: Tensor  # rows of the input, sorted by class, without classes that have no pairs or no anchors
    class_M: Tensor  # their group indices
    anchors_A: Tensor  # which of the sorted rows are anchors
    blocks: list[tuple[slice, slice]]  # anchors × sorted rows

    @classmethod
    def from_groups(cls, groups: ClassGroups, first: int, anchors: int) -> _SortedPairs:
        """Sort the samples and drop samples without a positive or an anchor in their class."""
        wanted_U = groups.counts_U > 1
        if anchors < len(groups.group_N):
            is_anchor_N = torch.zeros_like(groups.group_N)
            is_anchor_N[first : first + anchors] = 1
            wanted_U &= groups.sum(is_anchor_N) > 0
        kept_M = groups.of_samples(wanted_U).nonzero().flatten()
        class_M, sorting = groups.group_N[kept_M].sort(stable=True)
        order_M = kept_M[sorting]
        anchors_A = ((order_M >= first) & (order_M < first + anchors)).nonzero().flatten()
        start_A = torch.searchsorted(class_M, class_M[anchors_A])
        end_A = torch.searchsorted(class_M, class_M[anchors_A], right=True)
        return cls(order_M, class_M, anchors_A, _blocks(start_A.tolist(), end_A.tolist()))

    def excesses(self, sorted_MD: Tensor, slack_A: Tensor) -> Iterator[tuple[slice, Tensor, slice, Tensor]]:
        """Yield the anchors, rows and columns of each block, and ‖f - f⁺‖² - slack with -inf for non-pairs."""
        position_M = torch.arange(len(self.order_M), device=self.order_M.device)
        for anchors, columns in self.blocks:
            rows = self.anchors_A[anchors]
            excess = _squared_distances(sorted_MD[rows], sorted_MD[columns]).sub_(slack_A[anchors, None])
            no_pair = self.class_M[rows, None] != self.class_M[columns]
            no_pair |= rows[:, None] == position_M[columns]
            yield anchors, rows, columns, excess.masked_fill_(no_pair, -torch.inf)


def _blocks(starts: list[int], ends: list[int]) -> list[tuple[slice, slice]]:
    """Split the sorted anchors into blocks of rows, each with the range of columns of its classes."""
    blocks, row = [], 0
    while row < len(starts):
        stop = min(row + BLOCK_ROWS, len(starts))
        while stop - row > 1 and (stop - row) * (ends[stop - 1] - starts[row]) > BLOCK_ELEMENTS:
            stop = row + (stop - row) // 2
        blocks.append((slice(row, stop), slice(starts[row], ends[stop - 1])))
        row = stop
    return blocks


class _SortedPull(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, centered_ND: Tensor, groups: ClassGroups, slack_B: Tensor, first: int
    ) -> tuple[Tensor, Tensor]:
        pairs = _SortedPairs.from_groups(groups, first, len(slack_B))
        sorted_MD = centered_ND[pairs.order_M]
        anchor_rows_A = pairs.order_M[pairs.anchors_A] - first
        slack_A = slack_B[anchor_rows_A]
        terms_A, force_A = torch.empty_like(slack_A), torch.empty_like(slack_A)
        for anchors, _, _, excess in pairs.excesses(sorted_MD, slack_A):
            # As above. Σ w (excess - largest) is Σ w ln w up to normalization; xlogy is 0 at w = 0.
            largest = excess.amax(dim=1).clamp_(min=0)
            weights = excess.sub_(largest[:, None]).exp_()
            sums = weights.sum(dim=1)
            total = sums + (-largest).exp()
            terms_A[anchors] = largest + total.log()
            moment = torch.special.xlogy(weights, weights).sum(dim=1) + (largest + slack_A[anchors]) * sums
            force_A[anchors] = 2 * moment / total
        ctx.save_for_backward(sorted_MD, slack_A, terms_A, anchor_rows_A)
        ctx.pairs, ctx.shape = pairs, centered_ND.shape
        terms_B, force_B = (torch.zeros_like(slack_B).index_copy_(0, anchor_rows_A, x) for x in (terms_A, force_A))
        ctx.mark_non_differentiable(force_B)
        return terms_B, force_B

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_B: Tensor, _: Tensor) -> tuple[Tensor, None, None, None]:
        sorted_MD, slack_A, terms_A, anchor_rows_A = ctx.saved_tensors
        pairs: _SortedPairs = ctx.pairs
        grad_A = grad_B[anchor_rows_A]
        grad_MD = torch.zeros_like(sorted_MD)
        # As above, with weight_ij = exp(excess_ij - term_i).
        for anchors, rows, columns, excess in pairs.excesses(sorted_MD, slack_A):
            weights = excess.sub_(terms_A[anchors, None]).exp_().mul_(2 * grad_A[anchors, None])
            row_features, column_features = sorted_MD[rows], sorted_MD[columns]
            to_rows = torch.addmm(weights.sum(dim=1)[:, None] * row_features, weights, column_features, alpha=-1)
            to_columns = torch.addmm(weights.sum(dim=0)[:, None] * column_features, weights.T, row_features, alpha=-1)
            grad_MD[columns] += to_columns
            grad_MD.index_add_(0, rows, to_rows)
        grad_ND = grad_MD.new_zeros(ctx.shape)
        grad_ND.index_copy_(0, pairs.order_M, grad_MD)
        return grad_ND, None, None, None
