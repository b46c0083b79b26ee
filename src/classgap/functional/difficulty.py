"""Class weights from class accuracies: class-wise difficulty-balanced loss (Sinha et al. 2020)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

SMALLEST = 0.01  # ε of the published code: an accuracy of 0 would make the bias infinite


def difficulty_weights(accuracies_K: Tensor, tau: float | None = None) -> Tensor:
    """w_c = K d_c^τ / Σ_k d_k^τ with the difficulty d_c = 1 - A_c; equal weights if no class has errors.

    Args:
        accuracies_K: Accuracy A_c of each class, (K,).
        tau: τ, or ``None`` for the dynamic one; see :func:`dynamic_tau`.

    >>> difficulty_weights(torch.tensor([0.9, 0.5, 0.1]), tau=1.0)
    tensor([0.2000, 1.0000, 1.8000])
    """
    tau = dynamic_tau(accuracies_K) if tau is None else tau
    powers_K = (1 - accuracies_K).pow(tau)
    total = powers_K.sum()
    return torch.where(total > 0, len(powers_K) * powers_K / total, 1.0)


def dynamic_tau(accuracies_K: Tensor) -> float:
    """τ = 2 / (1 + exp(-b)), b = max A / (min A + ε) - 1: from about 1 for equal accuracies to 2.

    >>> dynamic_tau(torch.tensor([0.99, 0.99])) < 1.0 < dynamic_tau(torch.tensor([0.9, 0.1])) < 2.0
    True
    """
    bias = float(accuracies_K.max() / (accuracies_K.min() + SMALLEST)) - 1
    return 2 / (1 + math.exp(-bias))
