"""The softmax equalization loss (Tan et al. 2020, Sec. 3.3): rare classes are spared being pushed down as negatives."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def equalization_cross_entropy(logits_BK: Tensor, labels_B: Tensor, dropped_BK: Tensor) -> Tensor:
    """-z_y + ln Σ_k w_k e^{z_k} for each sample, Eq. (9) to (11); w_k = 0 for dropped classes other than y, else 1.

    Args:
        logits_BK: z.
        labels_B: y; samples labeled -1 give 0.
        dropped_BK: which classes are left out of the denominator; the true class never is.

    >>> equalization_cross_entropy(torch.zeros(1, 3), torch.tensor([0]), torch.tensor([[True, False, True]]))  # ln 2
    tensor([0.6931])
    """
    others_BK = labels_B[:, None] != torch.arange(logits_BK.shape[1], device=labels_B.device)
    # A sample without a class must keep some logit: the softmax of nothing is NaN, in backward too.
    masked_BK = logits_BK.masked_fill(dropped_BK & others_BK & (labels_B >= 0)[:, None], -torch.inf)
    return F.cross_entropy(masked_BK, labels_B, reduction="none", ignore_index=-1)
