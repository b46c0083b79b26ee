"""Class scores under one Gaussian per class, for the large-margin Gaussian mixture loss.

Wan et al., "Rethinking feature distribution for loss functions in image classification", CVPR 2018, arXiv 1803.02988,
"GM loss formulation" and "Large-margin GM loss".
"""

from __future__ import annotations

from torch import Tensor


def mahalanobis_distances(features_BD: Tensor, means_KD: Tensor, log_variance_KD: Tensor | None = None) -> Tensor:
    """d_k = ½ Σ_j (f_j - μ_kj)² / σ_kj² of each sample and class, (B, K); unit variances without ``log_variance_KD``.

    >>> import torch
    >>> mahalanobis_distances(torch.tensor([[1.0]]), torch.tensor([[0.0], [4.0]]))
    tensor([[0.5000, 4.5000]])
    """
    # Matrix products, because (B, K, D) differences would not fit. Centering at the mean of the means limits
    # cancellation; distances do not depend on the origin, so it needs no gradient.
    origin_D = means_KD.detach().mean(dim=0)
    features_BD, means_KD = features_BD - origin_D, means_KD - origin_D
    if log_variance_KD is None:
        squares_BK = features_BD.square().sum(dim=1)[:, None] + means_KD.square().sum(dim=1)
        scaled_KD = means_KD
    else:
        precision_KD = (-log_variance_KD).exp()
        scaled_KD = means_KD * precision_KD
        squares_BK = features_BD.square() @ precision_KD.T + (scaled_KD * means_KD).sum(dim=1)
    return (squares_BK / 2 - features_BD @ scaled_KD.T).clamp(min=0)


def half_log_determinants(log_variance_KD: Tensor) -> Tensor:
    """½ ln |Λ_k| of each class's diagonal covariance, (K,).

    >>> import torch
    >>> half_log_determinants(torch.tensor([[1.0, 3.0]]))
    tensor([2.])
    """
    return log_variance_KD.sum(dim=1) / 2
