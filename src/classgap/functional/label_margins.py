"""Label-distribution-aware margins (Cao et al. 2019, Sec. 3.2), larger for rarer classes."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def label_margins(counts_K: Tensor, *, largest: float = 0.5) -> Tensor:
    """Margins m_c ∝ N_c^{-1/4}, Eq. (13), scaled to the given maximum.

    >>> label_margins(torch.tensor([16.0, 1.0]))
    tensor([0.2500, 0.5000])
    """
    root_K = counts_K.pow(-0.25)
    return root_K * (largest / root_K.max())


def label_margin_cross_entropy(logits_BK: Tensor, labels_B: Tensor, margin_B: Tensor, *, scale: float) -> Tensor:
    """CE(s (z - m_y e_y), y) for each sample, Eq. (12): subtract the margin from the true logit, then scale.

    The scale s comes from the published code. 0 for samples labeled -1. With m = 0 and s = 1 it is cross-entropy.

    >>> cosines = torch.tensor([[1.0, 0.0]])
    >>> label_margin_cross_entropy(cosines, torch.tensor([0]), torch.tensor([0.25]), scale=1.0)
    tensor([0.3869])
    """
    own_BK = labels_B[:, None] == torch.arange(logits_BK.shape[1], device=labels_B.device)
    shifted_BK = torch.where(own_BK, logits_BK - margin_B[:, None], logits_BK)
    return F.cross_entropy(scale * shifted_BK, labels_B, reduction="none", ignore_index=-1)
