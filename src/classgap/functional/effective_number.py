"""Class weights from the effective number of samples (Cui et al. 2019), also used by deferred reweighting."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def effective_number_weights(counts_K: Tensor, beta: float = 0.9999) -> Tensor:
    """Weights w_c ∝ (1 - β) / (1 - β^{N_c}), Eq. (6), that sum to K; all 1 for β = 0.

    From Cui et al., "Class-Balanced Loss Based on Effective Number of Samples", CVPR 2019, arXiv 1901.05555, Sec. 4:
    the inverse of the effective number of Proposition 1. Deferred reweighting (Cao et al. 2019, Sec. 3.3) uses them
    late in training.

    Args:
        counts_K: Number of training samples N_c of each class, positive.
        beta: β in [0, 1).

    >>> effective_number_weights(torch.tensor([100.0, 10.0]))
    tensor([0.1826, 1.8174])
    """
    if beta == 0:
        return torch.ones_like(counts_K)
    # expm1 keeps the digits that 1 - β^N loses for β near 1. The constant 1 - β cancels.
    inverse_K = -1 / torch.expm1(counts_K * math.log(beta))
    return inverse_K * (len(counts_K) / inverse_K.sum())
