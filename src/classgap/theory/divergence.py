"""Divergence of two classes in a layer: the left side of Theorem 6.3 of LMDL (Nguyen et al. 2024)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from classgap.theory.arguments import check_labels, check_matrix
from classgap.theory.neighbors import BLOCK_ROWS, nearest


def class_divergence(features_ND: Tensor, labels_N: Tensor, *, pair: tuple[int, int], k: int = 10) -> Tensor:
    """Estimate the Jensen-Shannon divergence of two classes in a layer, Definition 6.2, in nats: from 0 to ln 2.

    By Lemma E.3 the divergence is the mutual information of the layer and a fair coin that chooses the class. Any
    classifier of the coin bounds it from below: ln 2 minus its cross-entropy on samples it was not fitted on. Here the
    classifier is a vote of the k nearest other samples, weighted to equal classes and smoothed by one vote for each
    class. Up to the sampling error the result is thus below the divergence, and close to it only if neighbors tell the
    classes apart as well as anything could. Smoothing limits it to about ln 2 - ln(1 + 1/(k + 1)).

    Theorem 6.3 states that the divergence in *any earlier* layer is at least ``layer_divergence`` of the penultimate
    features. Pass the features of an earlier layer, flattened or averaged over positions, to compare with it.

    Args:
        features_ND: Features of any layer.
        labels_N: Class of each row; other classes are ignored.
        pair: Two classes, with at least two samples each.
        k: Number of neighbors; reduced if there are fewer other samples.

    >>> features = torch.cat([torch.linspace(0, 1, 200), torch.linspace(5, 6, 200)])[:, None]
    >>> labels = torch.tensor([0, 1]).repeat_interleave(200)
    >>> round(class_divergence(features, labels, pair=(0, 1)).item(), 2)  # disjoint: ln 2 = 0.69, less the smoothing
    0.61
    >>> round(class_divergence(features, labels.reshape(2, 200).T.flatten(), pair=(0, 1)).item(), 2)  # alternating
    0.0
    """
    if k < 1:
        raise ValueError(f"k must be >= 1, got {k!r}.")
    features_ND = check_matrix("features_ND", features_ND)
    first, second = pair
    if first == second or min(pair) < 0:
        raise ValueError(f"pair must be two different classes, got {pair!r}.")
    labels_N = check_labels(labels_N, max(int(labels_N.max()), first, second) + 1, rows=len(features_ND))
    inside_N = (labels_N == first) | (labels_N == second)
    points_ND, is_second_N = features_ND[inside_N], (labels_N[inside_N] == second).long()
    counts_2 = is_second_N.bincount(minlength=2)
    if int(counts_2.min()) < 2:
        raise ValueError(f"labels_N must have at least two samples of the classes {pair!r}, got {counts_2.tolist()}.")
    k = min(k, len(points_ND) - 1)
    own_N = torch.cat(
        [
            _own_probability(points_ND, is_second_N, counts_2, rows, k)
            for rows in torch.arange(len(points_ND), device=points_ND.device).split(BLOCK_ROWS)
        ]
    )
    surprise_N = -own_N.log()
    cross_entropy = torch.stack([surprise_N[is_second_N == c].mean() for c in (0, 1)]).mean()
    return (math.log(2) - cross_entropy).clamp(min=0)


def _own_probability(points_ND: Tensor, class_N: Tensor, counts_2: Tensor, rows_Q: Tensor, k: int) -> Tensor:
    """Return the smoothed, class-balanced vote of the k nearest other samples for the class of each row."""
    found_Qj = nearest(points_ND, points_ND[rows_Q], k + 1)
    # Drop the row itself, or the last neighbor where identical points hide the row.
    is_self_Qj = found_Qj == rows_Q[:, None]
    is_self_Qj[:, -1] |= ~is_self_Qj.any(dim=1)
    near_Qk = class_N[found_Qj[~is_self_Qj].view(-1, k)]
    # Votes per sample of the class among the others, so that the larger class does not win by its size.
    others_Q2 = (counts_2 - torch.nn.functional.one_hot(class_N[rows_Q], 2)).to(points_ND)
    votes_Q2 = torch.nn.functional.one_hot(near_Qk, 2).sum(dim=1).to(points_ND)
    weight_Q2 = others_Q2.sum(dim=1, keepdim=True) / (2 * others_Q2)
    smoothed_Q2 = votes_Q2 * weight_Q2 + 1
    own_Q = smoothed_Q2.gather(1, class_N[rows_Q, None]).squeeze(1)
    return own_Q / smoothed_Q2.sum(dim=1)
