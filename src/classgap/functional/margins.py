"""The per-class logit margins γ of MR² (Zhu et al., ICLR 2026), Eq. (1), (14) and (17)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

# Lower limit of γ relative to the mean margin: a class whose features vanish would otherwise divide its logits by 0. It
# is reached only if the mean squared norm of the class is less than a millionth of the others'.
SMALLEST_MARGIN = 1e-2


def squared_norm(features_ND: Tensor, p: float = 2.0) -> Tensor:
    """Squared p-norm of each row, for any p ≥ 1 including infinity.

    >>> squared_norm(torch.tensor([[3.0, -4.0]]), p=1).tolist()
    [49.0]
    """
    if p == 2.0:
        return torch.linalg.vector_norm(features_ND, dim=1).square()  # unlike square().sum(), without a copy
    if p == 1.0 or math.isinf(p):
        return torch.linalg.vector_norm(features_ND, ord=p, dim=1).square()
    # p-th powers over- and underflow early, so divide by the largest entry first.
    largest_N1 = features_ND.abs().amax(dim=1, keepdim=True).clamp(min=torch.finfo(features_ND.dtype).tiny)
    scaled = torch.linalg.vector_norm(features_ND / largest_N1, ord=p, dim=1)
    return (largest_N1.squeeze(1) * scaled).square()


def class_margins(size_K: Tensor, *, mean: float = 1.0) -> Tensor:
    """γ_k = c̄ K r_k^{2/3} / Σ_j r_j^{2/3}, MR² Eq. (17); with p = 2 it is Eq. (1), as r_k² = ‖μ_k‖² + ‖s_k‖².

    Args:
        size_K: Class means r_k² of ‖f‖_p². Classes of size 0 (never seen) get c̄ and are excluded from K and the sum.
        mean: Mean margin c̄.

    >>> class_margins(torch.tensor([8.0, 1.0, 0.0])).tolist()  # in proportion to 8^(1/3) : 1; the third is unknown
    [1.3333..., 0.6666..., 1.0]
    """
    root_K = size_K.pow(1 / 3)
    known, total = torch.count_nonzero(root_K).to(root_K.dtype), root_K.sum()
    gamma_K = root_K * (known * mean / total.clamp(min=torch.finfo(total.dtype).tiny))
    return torch.threshold(gamma_K, 0.0, mean).clamp(min=SMALLEST_MARGIN * mean)  # 0, for the unknown, becomes the mean
