"""Confusional spectral regularization (Jin et al. 2025): weights of class pairs from the leading mode of confusions.

Proposition 3.1 of the paper (ICLR 2025, arXiv 2501.13273) bounds the error of the worst class by the spectral norm of
the confusion matrix. The functions follow the published code.
"""

from __future__ import annotations

import torch
from torch import Tensor

SMALLEST, RANGE = 0.01, 2.0  # of the weights, as in the published code


def count_confusions(logits_BK: Tensor, labels_B: Tensor, *, narrowing: float = 0.1) -> Tensor:
    """Count confusions by (predicted, true) after multiplying the true logit by 1 - ``narrowing``.

    The diagonal is 0, and samples labeled -1 are not counted. As published, the multiplication *raises* negative
    logits.

    >>> count_confusions(torch.tensor([[1.0, 0.95], [1.0, 0.0]]), torch.tensor([0, 0]))
    tensor([[0, 0],
            [1, 0]])
    """
    classes = logits_BK.shape[1]
    own_BK = labels_B[:, None] == torch.arange(classes, device=labels_B.device)
    predicted_B = torch.where(own_BK, (1 - narrowing) * logits_BK, logits_BK).argmax(dim=1)
    wrong_B = (predicted_B != labels_B) & (labels_B >= 0)
    pairs_B = predicted_B * classes + labels_B.clamp(min=0)
    counts = pairs_B.new_zeros(classes * classes).index_add(0, pairs_B, wrong_B.long())
    return counts.view(classes, classes)


def spectral_weights(confusion_KK: Tensor) -> Tensor:
    """Return G = u₁v₁ᵀ of the leading singular vectors of the confusion matrix, rescaled to [0.01, 2.01].

    It is the gradient of the spectral norm, and unique unless the largest singular value is repeated. All weights are 1
    if there are no confusions.

    Args:
        confusion_KK: Counts by (predicted, true).

    >>> spectral_weights(torch.tensor([[0.0, 2.0], [1.0, 0.0]]))
    tensor([[0.0100, 2.0100],
            [0.0100, 0.0100]])
    """
    left_KK, _, right_KK = torch.linalg.svd(confusion_KK)
    mode_KK = torch.outer(left_KK[:, 0], right_KK[0])
    lowest, highest = mode_KK.aminmax()
    if not bool(confusion_KK.any()) or highest == lowest:
        return torch.ones_like(confusion_KK)
    return RANGE * (mode_KK - lowest) / (highest - lowest) + SMALLEST
