"""The focal loss (Lin et al. 2017, Eq. 4) in two forms: softmax over classes, and a sum over one sigmoid per class."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def softmax_focal(logits_BK: Tensor, labels_B: Tensor, gamma: float) -> Tensor:
    """-(1 - p_y)^γ ln p_y for each sample, p = softmax(z); cross-entropy for γ = 0. 0 for samples labeled -1.

    >>> softmax_focal(torch.zeros(1, 2), torch.tensor([0]), gamma=1.0)  # ln 2 / 2
    tensor([0.3466])
    """
    cross_entropy_B = F.cross_entropy(logits_BK, labels_B, reduction="none", ignore_index=-1)
    other_B = -torch.expm1(-cross_entropy_B)  # 1 - p, exact where p is nearly 1
    # The gradient of a power below 1 is infinite at 0; the clamp makes it 0.
    return other_B.clamp(min=torch.finfo(other_B.dtype).tiny).pow(gamma) * cross_entropy_B


def sigmoid_focal(logits_BK: Tensor, labels_B: Tensor, gamma: float) -> Tensor:
    """Σ_k -(1 - q_k)^γ ln q_k for each sample, q_k = σ(z_k) for the true class, 1 - σ(z_k) for the others.

    0 for samples labeled -1.

    >>> sigmoid_focal(torch.zeros(1, 2), torch.tensor([0]), gamma=1.0)
    tensor([0.6931])
    """
    own_BK = labels_B[:, None] == torch.arange(logits_BK.shape[1], device=labels_B.device)
    right_BK = torch.where(own_BK, logits_BK, -logits_BK)  # q = σ(right)
    fading_BK = (gamma * F.logsigmoid(-right_BK)).exp()
    return (fading_BK * -F.logsigmoid(right_BK)).sum(dim=1) * (labels_B >= 0)
