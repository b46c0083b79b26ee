"""Class weights of distributionally robust optimization, computed from class losses."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def exponentiated_step(log_weights_K: Tensor, losses_K: Tensor, step: float) -> Tensor:
    """ln q after q_c ← q_c exp(η l_c) and normalization; group DRO (Sagawa et al. 2020), Algorithm 1.

    In logarithms, because a weight that underflows to 0 cannot grow again.

    >>> exponentiated_step(torch.tensor([0.5, 0.5]).log(), torch.tensor([1.0, 2.0]), step=0.01).exp()
    tensor([0.4975, 0.5025])
    """
    return torch.log_softmax(log_weights_K + step * losses_K, dim=0)


def chi_square_weights(losses_K: Tensor, radius: float) -> Tensor:
    """q = 1/K + √(2ρ/K) (l - l̄) / ‖l - l̄‖, the weights that maximize Σ_c q_c l_c in a χ² ball.

    FairDRO (Jung et al. 2023), Eq. (8), in the ball of Eq. (4). They sum to 1, but the closed form does not enforce
    signs: a weight is negative if the loss is more than 1/√(2ρ) standard deviations below the mean, which is impossible
    for ρ ≤ 1 / (2(K - 1)). Equal losses give 1/K.

    >>> chi_square_weights(torch.tensor([1.0, 2.0, 3.0]), radius=0.5)
    tensor([-0.0749,  0.3333,  0.7416])
    """
    classes = len(losses_K)
    deviation_K = losses_K - losses_K.mean()
    length = torch.linalg.vector_norm(deviation_K)
    direction_K = torch.where(length > 0, deviation_K / length, 0)
    return 1 / classes + math.sqrt(2 * radius / classes) * direction_K
