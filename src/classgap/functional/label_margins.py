"""Label-distribution-aware margins (Cao et al. 2019, Sec. 3.2): the rarer the class, the larger its margin."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def label_margins(counts_K: Tensor, *, largest: float = 0.5) -> Tensor:
    """m_c in proportion to N_c^{-1/4}, Eq. (13), scaled so that the largest is as given.

    >>> label_margins(torch.tensor([16.0, 1.0]))
    tensor([0.2500, 0.5000])
    """
    root_K = counts_K.pow(-0.25)
    return root_K * (largest / root_K.max())


def label_margin_cross_entropy(logits_BK: Tensor, labels_B: Tensor, margin_B: Tensor, *, scale: float) -> Tensor:
    """CE(s (z - m_y e_y), y) for each sample, Eq. (12): the margin is taken off the true logit, then all are scaled.

    The scale s is not in the equation, but in the published code. Samples labeled -1 give 0. With m = 0 and s = 1 it
    is cross-entropy.

    >>> cosines = torch.tensor([[1.0, 0.0]])
    >>> label_margin_cross_entropy(cosines, torch.tensor([0]), torch.tensor([0.25]), scale=1.0)
    tensor([0.3869])
    """
    own_BK = labels_B[:, None] == torch.arange(logits_BK.shape[1], device=labels_B.device)
    shifted_BK = torch.where(own_BK, logits_BK - margin_B[:, None], logits_BK)
    return F.cross_entropy(scale * shifted_BK, labels_B, reduction="none", ignore_index=-1)
