"""The spread-out regularizer (Zhang et al. 2017), in the notation of ELM Eq. (7) to (9)."""

from __future__ import annotations

import torch
from torch import Tensor


def spread_out(unit_ND: Tensor, pair_NN: Tensor) -> Tensor:
    """M₁² + max(0, M₂ - 1/D), of the mean M₁ and the mean square M₂ of f·f' over pairs; 0 without pairs.

    Directions drawn uniformly on the sphere have M₁ = 0 and M₂ = 1/D.

    Args:
        unit_ND: Features of unit length.
        pair_NN: Pairs to compare.

    >>> pair = torch.tensor([[0, 1], [1, 0]]).bool()
    >>> spread_out(torch.eye(2), pair), spread_out(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), pair)
    (tensor(0.), tensor(1.5000))
    """
    cosine_NN = torch.where(pair_NN, unit_ND @ unit_ND.T, 0)
    pairs = pair_NN.sum().clamp(min=1)
    mean, mean_square = cosine_NN.sum() / pairs, cosine_NN.square().sum() / pairs
    return mean.square() + (mean_square - 1 / unit_ND.shape[1]).clamp(min=0)
