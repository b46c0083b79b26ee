"""Positive and negative pairs of a batch and their distances, for losses on pairs, triplets and contrasts.

The functions return matrices of anchors (B) by samples of the global batch (N), which suits batches of up to a few
thousand samples. :mod:`classgap.functional.pairwise_pull` needs less memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

SMALLEST_LENGTH = 1e-6  # shorter features have no direction: dividing by the length would inflate the gradient


@dataclass(frozen=True)
class SamplePairs:
    """Positives (same class) and negatives (other class) of each anchor, without itself and samples without a class.

    >>> pairs = SamplePairs.from_labels(torch.tensor([0, 0, 1, -1]))
    >>> pairs.positive_BN.int().tolist()
    [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    >>> pairs.negative_BN.int().tolist()
    [[0, 0, 1, 0], [0, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 0]]
    """

    positive_BN: Tensor
    negative_BN: Tensor

    @classmethod
    def from_labels(cls, labels_N: Tensor, rows: slice = slice(None)) -> SamplePairs:
        """Pair the anchors ``rows`` with all samples; samples labeled -1 have no class."""
        place_N = torch.arange(len(labels_N), device=labels_N.device)
        labels_B = labels_N[rows]
        same_BN = labels_B[:, None] == labels_N
        pair_BN = (place_N[rows, None] != place_N) & (labels_B >= 0)[:, None] & (labels_N >= 0)
        return cls(positive_BN=pair_BN & same_BN, negative_BN=pair_BN & ~same_BN)

    @property
    def other_BN(self) -> Tensor:
        """Positives and negatives."""
        return self.positive_BN | self.negative_BN


def distances(rows_RD: Tensor, columns_CD: Tensor, *, squared: bool = False) -> Tensor:
    """‖a - b‖₂, or its square, of every row with every column, (R, C); the gradient at distance 0 is 0.

    >>> distances(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[5., 0.]])
    """
    # Not by matrix products, in which the distance between similar rows cancels.
    apart_RC = torch.cdist(rows_RD, columns_CD, compute_mode="donot_use_mm_for_euclid_dist")
    return apart_RC.square() if squared else apart_RC


def on_sphere(features_BD: Tensor) -> Tensor:
    """Normalize rows to unit length; rows of length 0 stay 0, without gradient.

    >>> on_sphere(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    length_B1 = torch.linalg.vector_norm(features_BD, dim=1, keepdim=True)
    nonzero_B1 = length_B1 > SMALLEST_LENGTH
    return torch.where(nonzero_B1, features_BD / torch.where(nonzero_B1, length_B1, 1), 0)
