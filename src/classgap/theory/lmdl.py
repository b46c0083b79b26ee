"""Theorems 5.2, 5.3 and 6.3 of LMDL (Nguyen et al. 2024).

Sec. 4.3 is in ``separation``, Sec. 4.6 in ``feature_scaling``, the divergence of Sec. 6 in ``divergence``.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from classgap.functional import group_by_class
from classgap.theory.arguments import check_labels, check_matrix, check_positive, check_vector
from classgap.theory.divergence import class_divergence
from classgap.theory.feature_scaling import ScaledParameters, parameter_change, scale_parameters
from classgap.theory.risk_bound import RiskBound, low_order_term, ramp_loss
from classgap.theory.separation import Separation, class_dispersion, class_margin, separation

__all__ = [
    "LayerDivergence",
    "ScaledParameters",
    "Separation",
    "class_dispersion",
    "class_divergence",
    "class_margin",
    "layer_divergence",
    "pair_bound",
    "parameter_change",
    "scale_parameters",
    "separation",
    "sphere_bound",
]


def pair_bound(
    features_ND: Tensor,
    labels_N: Tensor,
    centroids_KD: Tensor,
    weight_KD: Tensor,
    bias_K: Tensor | None = None,
    *,
    pair: tuple[int, int],
    width: float,
    delta: float = 0.05,
    any_features: bool = False,
) -> RiskBound:
    """Theorem 5.2: with probability 1 - δ, the error rate between two classes is at most

        mean Φ_ρ(y h(x))  +  (2Γ/ρ) √((r + R)² + 1) / √N  +  3 √(ln(2/δ) / 2N),               Eq. (5.2)

    where h = z_i - z_j. Γ is the norm of (W_i - W_j, b_i - b_j), R the larger norm of the two centroids, and r the
    largest distance of a sample to the nearer centroid. The theorem requires bounds that are known beforehand and hold
    for every x; here they are the smallest that fit the sample. The theorem writes h ∈ M(X, F), but h is real-valued.

    Eq. (5.3), for features chosen together with the head, lacks 1/√N and cannot be below 1: |h| is at most a = Γ √((r +
    R)² + 1), so for ρ ≤ 2a the second term is at least 1, and for larger ρ the first is at least 1 - a/ρ.

    Args:
        features_ND: Features q.
        labels_N: Class of each row; other classes are ignored.
        centroids_KD: Centroids m_c.
        weight_KD: Weights W.
        bias_K: Biases b, if the head has any.
        pair: Classes i and j.
        width: Width ρ of the ramp loss.
        delta: Probability δ that the bound fails.
        any_features: Whether to compute Eq. (5.3) instead of Eq. (5.2).

    >>> f, y = torch.tensor([[2.0], [-2.0]]).repeat(5000, 1), torch.tensor([0, 1]).repeat(5000)
    >>> pair_bound(f, y, f[:2], torch.tensor([[1.0], [-1.0]]), pair=(0, 1), width=4.0)
    RiskBound(risk=tensor(0.), complexity=tensor(0.0224), low_order=tensor(0.0407))
    """
    width = check_positive("width", width)
    features_ND, labels_N, weight_KD, centroids_KD = _inputs(features_ND, labels_N, weight_KD, centroids_KD)
    first, second = (_class_number("pair", label, len(weight_KD)) for label in pair)
    if first == second:
        raise ValueError(f"pair must be two different classes, got {pair!r}.")
    inside_N = (labels_N == first) | (labels_N == second)
    if not bool(inside_N.any()):
        raise ValueError(f"labels_N has no sample of the classes {first} and {second}.")
    features_ND, sign_N = features_ND[inside_N], 2 * (labels_N[inside_N] == first).to(features_ND.dtype) - 1
    weight_D = weight_KD[first] - weight_KD[second]
    bias = weight_D.new_zeros(())
    if bias_K is not None:
        bias_K = check_vector("bias_K", bias_K, len(weight_KD)).to(features_ND)
        bias = bias_K[first] - bias_K[second]
    centroids_2D = centroids_KD[[first, second]]
    away_N2 = torch.stack([(features_ND - centroid_D).norm(dim=1) for centroid_D in centroids_2D], dim=1)
    reach = away_N2.amin(dim=1).amax() + centroids_2D.norm(dim=1).amax()  # r + R
    complexity = 2 / width * torch.hypot(weight_D.norm(), bias) * (reach.square() + 1).sqrt()
    return RiskBound(
        risk=ramp_loss(sign_N * (features_ND @ weight_D + bias), width).mean(),
        complexity=complexity if any_features else complexity / len(features_ND) ** 0.5,
        low_order=low_order_term(len(features_ND), delta),
    )


def sphere_bound(
    features_ND: Tensor, centroid_D: Tensor, *, radius: float, width: float, delta: float = 0.05
) -> RiskBound:
    """Theorem 5.3, Eq. (5.4): with probability 1 - δ, a sample is outside the sphere of its class at a rate of at most

        mean Φ_ρ(r² - ‖q - m‖²)  +  (2/ρ) (Λ² + 2RΛ + R²/√N)  +  3 √(ln(2/δ) / 2N).

    Λ is the largest norm of a feature and R the norm of the centroid, the smallest values that fit the sample. The
    features may be any functions bounded by Λ, so Λ² + 2RΛ does not shrink with N. If R ≤ Λ, as for any mean of the
    features, the bound cannot be below 1 unless the sphere contains everything: the first term is at least 1 - r²/ρ,
    the second at least (2/ρ)(Λ² + 2RΛ), and r < R + Λ implies r² < 2Λ² + 4RΛ.

    Args:
        features_ND: Features of one class.
        centroid_D: Centroid m.
        radius: Radius r of the sphere.
        width: Width ρ of the ramp loss, in units of squared distance.
        delta: Probability δ that the bound fails.

    >>> sphere_bound(torch.ones(10000, 1), torch.ones(1), radius=0.5, width=0.25)
    RiskBound(risk=tensor(0.), complexity=tensor(24.0800), low_order=tensor(0.0407))
    """
    radius, width = check_positive("radius", radius), check_positive("width", width)
    features_ND = check_matrix("features_ND", features_ND)
    if not len(features_ND):
        raise ValueError("features_ND must have at least one row, got none.")
    centroid_D = check_vector("centroid_D", centroid_D, features_ND.shape[1]).to(features_ND)
    inside_N = radius**2 - (features_ND - centroid_D).square().sum(dim=1)
    feature_norm, centroid_norm = features_ND.norm(dim=1).amax(), centroid_D.norm()
    shrinking = centroid_norm.square() / len(features_ND) ** 0.5
    return RiskBound(
        risk=ramp_loss(inside_N, width).mean(),
        complexity=2 / width * (feature_norm.square() + 2 * centroid_norm * feature_norm + shrinking),
        low_order=low_order_term(len(features_ND), delta),
    )


@dataclass(frozen=True)
class LayerDivergence:
    """Theorem 6.3 and its conditions."""

    inside_K: Tensor  # fraction of each class within δ_v of its centroid; NaN for a class without samples
    disjoint: bool  # whether no two spheres intersect
    divergence: Tensor  # the lower bound, in nats; 0 if the theorem does not apply

    @property
    def tau(self) -> Tensor:
        """τ, the smallest fraction over the classes."""
        return self.inside_K[~self.inside_K.isnan()].amin()


def layer_divergence(features_ND: Tensor, labels_N: Tensor, centroids_KD: Tensor, *, radius: float) -> LayerDivergence:
    """Theorem 6.3, Eq. (6.1): (2τ - 1)²/2 ≤ Jensen-Shannon divergence of any two classes in any earlier layer.

    It requires τ ≥ 1/2 and disjoint spheres. The proof uses the latter, but the theorem omits it. Zero losses with δ_d
    > δ_v imply both. The proof drops the square of the total variation before Eq. (E.2); the result has it.

    Args:
        features_ND: Penultimate features.
        labels_N: Class of each row, or -1.
        centroids_KD: Centroids m_c.
        radius: Radius δ_v.

    >>> f, y = torch.tensor([[0.0], [0.1], [5.0], [9.0]]), torch.tensor([0, 0, 1, 1])
    >>> layer_divergence(f, y, torch.tensor([[0.0], [5.0]]), radius=1.0).divergence  # τ = 1/2
    tensor(0.)
    >>> layer_divergence(f[:3], y[:3], torch.tensor([[0.0], [5.0]]), radius=1.0).divergence
    tensor(0.5000)
    """
    radius = check_positive("radius", radius)
    features_ND, labels_N, _, centroids_KD = _inputs(features_ND, labels_N, centroids_KD, centroids_KD)
    groups = group_by_class(labels_N, len(centroids_KD))
    centroids_UD = centroids_KD[groups.classes_U]
    away_N = (features_ND - groups.of_samples(centroids_UD)).norm(dim=1)
    inside_U = groups.mean((away_N <= radius).to(features_ND.dtype))
    inside_K = features_ND.new_full((len(centroids_KD),), torch.nan).index_copy(0, groups.classes_U, inside_U)
    disjoint = bool((torch.nn.functional.pdist(centroids_UD) > 2 * radius).all())
    excess = (2 * inside_U.amin() - 1).clamp(min=0) if disjoint else inside_U.new_zeros(())
    return LayerDivergence(inside_K=inside_K, disjoint=disjoint, divergence=excess.square() / 2)


def _inputs(
    features_ND: Tensor, labels_N: Tensor, weight_KD: Tensor, centroids_KD: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    features_ND = check_matrix("features_ND", features_ND)
    columns = features_ND.shape[1]
    weight_KD = check_matrix("weight_KD", weight_KD, columns=columns).to(features_ND)
    centroids_KD = check_matrix("centroids_KD", centroids_KD, columns=columns).to(features_ND)
    return features_ND, check_labels(labels_N, len(weight_KD), rows=len(features_ND)), weight_KD, centroids_KD


def _class_number(name: str, label: int, num_classes: int) -> int:
    if not 0 <= label < num_classes:
        raise ValueError(f"{name} must hold classes from 0 to {num_classes - 1}, got {label!r}.")
    return label
