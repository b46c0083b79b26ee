"""The terms of the Large Margin Discriminative Loss (Nguyen et al. 2024), Eq. (4.4) to (4.6)."""

from __future__ import annotations

import torch
from torch import Tensor

# Two rows of the head closer than this, relative to their norms, define no boundary: W_c - W_i is rounding noise, and
# dividing by its norm would make the gradient arbitrarily large.
SMALLEST_BOUNDARY = 1e-6


def compactness(features_BD: Tensor, centroids_BD: Tensor, radius: float) -> Tensor:
    """[‖f - m_y‖ - δ_v]₊² for each sample, the summand of Eq. (4.4).

    >>> compactness(torch.tensor([[1.5, 0.0]]), torch.zeros(1, 2), radius=0.5)
    tensor([1.])
    """
    # vector_norm has the subgradient 0 at distance 0, where an explicit square root gives NaN.
    distance_B = torch.linalg.vector_norm(features_BD - centroids_BD, dim=1)
    return (distance_B - radius).clamp(min=0).square()


def signed_boundary_distance(
    points_UD: Tensor, classes_U: Tensor, weight_KD: Tensor, bias_K: Tensor | None = None
) -> Tensor:
    """Signed distance of each point to the boundary between its class and every class, (U, K), Eq. (4.6).

    Positive on the side of the point's class. Infinite for the class itself and for identical rows of the head, which
    have no boundary. Differentiable in points, weight and bias.

    >>> W = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    >>> signed_boundary_distance(torch.tensor([[3.0, 0.0]]), torch.tensor([0]), W)
    tensor([[inf, 3.]])
    """
    scores_UK = points_UD @ weight_KD.T
    if bias_K is not None:
        scores_UK = scores_UK + bias_K
    lead_UK = scores_UK.gather(1, classes_U[:, None]) - scores_UK
    own_UD = weight_KD[classes_U]
    # Not by matrix products, in which the distance between similar rows cancels.
    apart_UK = torch.cdist(own_UD, weight_KD, compute_mode="donot_use_mm_for_euclid_dist")
    length_UK = torch.linalg.vector_norm(own_UD, dim=1)[:, None] + torch.linalg.vector_norm(weight_KD, dim=1)
    exists_UK = apart_UK > SMALLEST_BOUNDARY * length_UK.detach()
    # torch.where differentiates both branches, so the unused quotient must be finite too.
    return torch.where(exists_UK, lead_UK / torch.where(exists_UK, apart_UK, 1), torch.inf)


def boundary_shortfall(
    points_UD: Tensor, classes_U: Tensor, weight_KD: Tensor, bias_K: Tensor | None = None, *, distance: float
) -> Tensor:
    """max_{i≠c} [δ_d - (signed distance to the boundary of c and i)]₊ for each point, the summand of Eq. (4.5).

    >>> W = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    >>> boundary_shortfall(torch.tensor([[3.0, 0.0]]), torch.tensor([0]), W, distance=6.0)
    tensor([3.])
    """
    signed_UK = signed_boundary_distance(points_UD, classes_U, weight_KD, bias_K)
    return (distance - signed_UK).clamp(min=0).amax(dim=1)
