"""Nearest neighbors in feature space: the classifier that ELM names in Sec. 4.1, and class probabilities from it."""

from __future__ import annotations

import torch
from torch import Tensor

from classgap.theory.arguments import check_labels, check_matrix

BLOCK_ROWS = 1024  # queries whose distances are in memory at once


def knn_predict(
    features_ND: Tensor, labels_N: Tensor, queries_MD: Tensor, *, num_classes: int, k: int = 5, balanced: bool = False
) -> Tensor:
    """Classify by the k nearest training samples: the classifier after training of ELM Sec. 4.1.

    The ELM paper argues that compact classes help this classifier. If the classes are farther apart than they are wide
    (LMDL Proposition 4.2, part 2), one neighbor makes no error on the training samples. The class with the most votes
    wins; in case of a tie, the one with the nearest sample.

    Args:
        features_ND: Features of the training samples.
        labels_N: Their classes, or -1 to ignore a row.
        queries_MD: Features to classify.
        num_classes: Number of classes K.
        k: Number of neighbors; at most the number of training samples.
        balanced: Weight each neighbor by the inverse of its class's size, for long-tailed training samples.

    >>> features, labels = torch.tensor([[0.0], [1.0], [2.0], [8.0]]), torch.tensor([0, 0, 0, 1])
    >>> queries = torch.tensor([[1.5], [7.0]])
    >>> knn_predict(features, labels, queries, num_classes=2, k=3)
    tensor([0, 0])
    >>> knn_predict(features, labels, queries, num_classes=2, k=3, balanced=True)
    tensor([0, 1])
    """
    features_ND, labels_N, weight_K = _inputs(features_ND, labels_N, num_classes, k, balanced=balanced)
    queries_MD = check_matrix("queries_MD", queries_MD, columns=features_ND.shape[1]).to(features_ND)
    found = []
    for block_QD in queries_MD.split(BLOCK_ROWS):
        near_Qk = labels_N[nearest(features_ND, block_QD, k)]
        votes_QK = block_QD.new_zeros(len(block_QD), num_classes).scatter_add(1, near_Qk, weight_K[near_Qk])
        # The neighbors are sorted, so the first one of a class with the most votes breaks ties.
        most_Q1 = votes_QK.amax(dim=1, keepdim=True) * (1 - 1e-6)
        first_Q = (votes_QK.gather(1, near_Qk) >= most_Q1).int().argmax(dim=1)
        found.append(near_Qk.gather(1, first_Q[:, None]).squeeze(1))
    return torch.cat(found) if found else labels_N.new_zeros(0)


def nearest(features_ND: Tensor, queries_QD: Tensor, k: int) -> Tensor:
    """Return the rows of the k nearest features of each query, nearest first; (Q, k)."""
    distance_QN = torch.cdist(queries_QD, features_ND, compute_mode="donot_use_mm_for_euclid_dist")
    return distance_QN.topk(k, dim=1, largest=False).indices


def _inputs(
    features_ND: Tensor, labels_N: Tensor, num_classes: int, k: int, *, balanced: bool
) -> tuple[Tensor, Tensor, Tensor]:
    features_ND = check_matrix("features_ND", features_ND)
    labels_N = check_labels(labels_N, num_classes, rows=len(features_ND))
    features_ND, labels_N = features_ND[labels_N >= 0], labels_N[labels_N >= 0]
    if not 1 <= k <= len(labels_N):
        raise ValueError(f"k must be from 1 to the number of training samples, {len(labels_N)}, got {k!r}.")
    counts_K = labels_N.bincount(minlength=num_classes).clamp(min=1).to(features_ND)
    return features_ND, labels_N, 1 / counts_K if balanced else torch.ones_like(counts_K)
