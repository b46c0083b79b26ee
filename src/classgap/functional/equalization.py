"""The softmax equalization loss (Tan et al. 2020, Sec. 3.3), which drops rare classes from the denominator."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def equalization_cross_entropy(logits_BK: Tensor, labels_B: Tensor, dropped_BK: Tensor) -> Tensor:
    """-z_y + ln Σ_k w_k e^{z_k} for each sample, Eq. (9) to (11); w_k = 0 for dropped classes other than y, else 1.

    Args:
        logits_BK: Logits z.
        labels_B: Classes y; the term is 0 for -1.
        dropped_BK: Classes to drop from the denominator; the true class is always kept.

    >>> equalization_cross_entropy(torch.zeros(1, 3), torch.tensor([0]), torch.tensor([[True, False, True]]))  # ln 2
    tensor([0.6931])
    """
    others_BK = labels_B[:, None] != torch.arange(logits_BK.shape[1], device=labels_B.device)
    # Samples without a class keep their logits: the softmax of an empty set is NaN, in backward too.
    masked_BK = logits_BK.masked_fill(dropped_BK & others_BK & (labels_B >= 0)[:, None], -torch.inf)
    return F.cross_entropy(masked_BK, labels_B, reduction="none", ignore_index=-1)
