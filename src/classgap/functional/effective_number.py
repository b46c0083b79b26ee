"""Class weights from the effective number of samples (Cui et al. 2019), also those of deferred re-weighting."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def effective_number_weights(counts_K: Tensor, beta: float = 0.9999) -> Tensor:
    """w_c in proportion to (1 - β) / (1 - β^{N_c}), Eq. (6), with the sum K; β = 0 gives 1 for every class.

    From Cui et al., "Class-Balanced Loss Based on Effective Number of Samples", CVPR 2019, arXiv 1901.05555, Sec. 4:
    the inverse of the effective number of Proposition 1. Deferred re-weighting (Cao et al. 2019, Sec. 3.3) trains with
    weights of 1 first, then with these.

    Args:
        counts_K: N_c, training samples of each class, above 0.
        beta: β, at least 0 and below 1.

    >>> effective_number_weights(torch.tensor([100.0, 10.0]))
    tensor([0.1826, 1.8174])
    """
    if beta == 0:
        return torch.ones_like(counts_K)
    # expm1 keeps the digits that 1 - β^N loses when β is nearly 1; the constant 1 - β falls out of the ratio.
    inverse_K = -1 / torch.expm1(counts_K * math.log(beta))
    return inverse_K * (len(counts_K) / inverse_K.sum())
