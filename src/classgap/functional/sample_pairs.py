"""Which samples pair with which, and how far apart they are: what losses on pairs, triplets and contrasts share.

Everything here is a matrix of anchors (B) by samples of the whole batch (N): B · N numbers, and the same again for the
gradient. That suits batches of up to a few thousand samples; :mod:`classgap.functional.pairwise_pull` shows what it
takes to do with less.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

SMALLEST_LENGTH = 1e-6  # below it a feature has no direction: dividing by its length would blow the gradient up


@dataclass(frozen=True)
class SamplePairs:
    """For each anchor, which samples share its class and which have another; itself and samples without a class never.

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
        """The pairs of the anchors ``rows`` with all samples; a label of -1 means "no class"."""
        place_N = torch.arange(len(labels_N), device=labels_N.device)
        labels_B = labels_N[rows]
        same_BN = labels_B[:, None] == labels_N
        pair_BN = (place_N[rows, None] != place_N) & (labels_B >= 0)[:, None] & (labels_N >= 0)
        return cls(positive_BN=pair_BN & same_BN, negative_BN=pair_BN & ~same_BN)

    @property
    def other_BN(self) -> Tensor:
        """All others, of any class."""
        return self.positive_BN | self.negative_BN


def distances(rows_RD: Tensor, columns_CD: Tensor, *, squared: bool = False) -> Tensor:
    """‖a - b‖₂, or its square, of every row with every column, (R, C); the gradient at distance 0 is 0.

    >>> distances(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[5., 0.]])
    """
    # Differences before squares: a Gram product would lose the distance between similar rows.
    apart_RC = torch.cdist(rows_RD, columns_CD, compute_mode="donot_use_mm_for_euclid_dist")
    return apart_RC.square() if squared else apart_RC


def on_sphere(features_BD: Tensor) -> Tensor:
    """f / ‖f‖, and 0 without gradient where f vanishes.

    >>> on_sphere(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    length_B1 = torch.linalg.vector_norm(features_BD, dim=1, keepdim=True)
    nonzero_B1 = length_B1 > SMALLEST_LENGTH
    return torch.where(nonzero_B1, features_BD / torch.where(nonzero_B1, length_B1, 1), 0)
