"""Dispersion, margins and separation of classes: LMDL (Nguyen et al. 2024), Sec. 4.3."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from classgap.functional import compactness, group_by_class, signed_boundary_distance
from classgap.functional.discriminative import SMALLEST_BOUNDARY
from classgap.theory.arguments import check_labels, check_matrix, check_positive, check_vector
from classgap.theory.hard_pull import farthest_distances

BLOCK_ROWS = 4096  # samples whose scores, and classes whose boundaries, are in memory at once
BLOCK_CLASSES = 256


def class_dispersion(features_ND: Tensor, labels_N: Tensor, num_classes: int) -> Tensor:
    """The largest distance between two samples of each class, Definition 4.1; NaN for a class without samples.

    >>> class_dispersion(torch.tensor([[0.0, 0.0], [3.0, 4.0]]), torch.tensor([0, 0]), num_classes=2)
    tensor([5., nan])
    """
    labels_N = check_labels(labels_N, num_classes, rows=len(features_ND))
    far_N = farthest_distances(features_ND, labels_N, num_classes)
    known_N = labels_N >= 0
    lowest_K = far_N.new_full((num_classes,), -torch.inf)
    dispersion_K = lowest_K.scatter_reduce(0, labels_N[known_N], far_N[known_N], "amax")
    return torch.where(dispersion_K >= 0, dispersion_K, torch.nan)


def class_margin(
    features_ND: Tensor, labels_N: Tensor, weight_KD: Tensor, bias_K: Tensor | None = None, *, signed: bool = False
) -> Tensor:
    """The smallest distance of a class's samples to a decision boundary of the class, Definition 4.2.

    The definition uses unsigned distances, so a sample far on the wrong side counts as far from the boundary. With
    ``signed`` it counts as negative. Both agree if every sample of the class is classified correctly, and Proposition
    4.2 holds for both. NaN for a class without samples, infinite if the head has no boundary.

    >>> f, y = torch.tensor([[3.0], [1.0], [2.0]]), torch.tensor([0, 0, 1])
    >>> W = torch.tensor([[1.0], [-1.0]])
    >>> class_margin(f, y, W), class_margin(f, y, W, signed=True)
    (tensor([1., 2.]), tensor([ 1., -2.]))
    """
    features_ND = check_matrix("features_ND", features_ND)
    weight_KD = check_matrix("weight_KD", weight_KD, columns=features_ND.shape[1]).to(features_ND)
    labels_N = check_labels(labels_N, len(weight_KD), rows=len(features_ND))
    groups = group_by_class(labels_N, len(weight_KD))
    bias_K = weight_KD.new_zeros(len(weight_KD)) if bias_K is None else check_vector("bias_K", bias_K, len(weight_KD))
    # All samples of a class share ‖W_c - W_i‖, so the smallest lead over class i is sufficient.
    lead_UK = features_ND.new_full((len(groups.classes_U), len(weight_KD)), torch.inf)
    for rows in (labels_N >= 0).nonzero().flatten().split(BLOCK_ROWS):
        scores_BK = torch.addmm(bias_K.to(features_ND), features_ND[rows], weight_KD.T)
        lead_BK = scores_BK.gather(1, labels_N[rows, None]) - scores_BK
        group_BK = groups.group_N[rows, None].expand_as(lead_BK)
        lead_UK.scatter_reduce_(0, group_BK, lead_BK if signed else lead_BK.abs(), "amin")
    margin_U = torch.cat(
        [
            _nearest_boundary(lead_UK[block], groups.classes_U[block], weight_KD)
            for block in torch.arange(len(groups.classes_U), device=lead_UK.device).split(BLOCK_CLASSES)
        ]
    )
    return features_ND.new_full((len(weight_KD),), torch.nan).index_copy(0, groups.classes_U, margin_U)


def _nearest_boundary(lead_UK: Tensor, classes_U: Tensor, weight_KD: Tensor) -> Tensor:
    """Return min_{i≠c} of the lead divided by ‖W_c - W_i‖, Eq. (4.6), without identical rows."""
    own_UD = weight_KD[classes_U]
    apart_UK = torch.cdist(own_UD, weight_KD, compute_mode="donot_use_mm_for_euclid_dist")
    exists_UK = apart_UK > SMALLEST_BOUNDARY * (own_UD.norm(dim=1)[:, None] + weight_KD.norm(dim=1))
    return torch.where(exists_UK, lead_UK / torch.where(exists_UK, apart_UK, 1), torch.inf).amin(dim=1)


@dataclass(frozen=True)
class Separation:
    """The two losses on the full sample, and the guarantees of Propositions 4.1 and 4.2 if they are zero.

    Without a guarantee the upper bound is infinite and the lower bounds are 0.
    """

    compact_loss: Tensor  # Eq. (4.4)
    margin_loss: Tensor  # Eq. (4.5)
    largest_dispersion: float  # upper bound on the dispersion: Proposition 4.1
    smallest_margin: float  # lower bound on the class margin: Proposition 4.2, part 1
    smallest_gap: float  # lower bound on the distance between classes: proof of part 2

    @property
    def ordered(self) -> bool:
        """Whether any two samples of one class are closer than any two of different classes: part 2."""
        return self.smallest_gap > self.largest_dispersion


def separation(
    features_ND: Tensor,
    labels_N: Tensor,
    centroids_KD: Tensor,
    weight_KD: Tensor,
    bias_K: Tensor | None = None,
    *,
    radius: float,
    distance: float,
) -> Separation:
    """Guarantees of zero losses: dispersion ≤ 2δ_v, margin ≥ δ_d - δ_v, distance between classes ≥ 2(δ_d - δ_v).

    Both losses must be zero over all samples, not over a batch, and with one centroid m_c. The paper trains with
    running centroids in Eq. (4.4) and batch centroids in Eq. (4.5), for which the propositions are not proved. In Eq.
    (4.5), (m_c)_i is the score z_i(m_c), not a coordinate. Part 2 needs a boundary between every two classes, so it
    fails for identical rows of the head. δ_v and δ_d need not be those used in training: the largest distance to a
    centroid and the smallest distance from a centroid to a boundary, if it is positive, always give zero losses.

    Args:
        features_ND: Features q.
        labels_N: Class of each row, or -1.
        centroids_KD: Centroids m_c; rows of classes without samples are ignored.
        weight_KD: Weights W.
        bias_K: Biases b, if the head has any.
        radius: Radius δ_v.
        distance: Distance δ_d.

    >>> f, y = torch.tensor([[3.0], [4.0], [-3.0]]), torch.tensor([0, 0, 1])
    >>> result = separation(f, y, torch.tensor([[3.5], [-3.0]]), torch.tensor([[1.0], [-1.0]]), radius=0.5, distance=3)
    >>> result.largest_dispersion, result.smallest_margin, result.smallest_gap, result.ordered
    (1.0, 2.5, 5.0, True)
    """
    radius, distance = check_positive("radius", radius), check_positive("distance", distance)
    features_ND = check_matrix("features_ND", features_ND)
    weight_KD = check_matrix("weight_KD", weight_KD, columns=features_ND.shape[1]).to(features_ND)
    centroids_KD = check_matrix("centroids_KD", centroids_KD, columns=features_ND.shape[1]).to(features_ND)
    groups = group_by_class(check_labels(labels_N, len(weight_KD), rows=len(features_ND)), len(weight_KD))
    centroids_UD = centroids_KD[groups.classes_U]
    compact_U = groups.mean(compactness(features_ND, groups.of_samples(centroids_UD), radius))
    signed_UK = signed_boundary_distance(centroids_UD, groups.classes_U, weight_KD, bias_K)
    compact_loss, margin_loss = compact_U.mean(), (distance - signed_UK).clamp(min=0).amax(dim=1).mean()
    compact, apart = bool(compact_loss == 0), bool(margin_loss == 0)
    # Infinite means no boundary, which is expected only for each class with itself.
    all_bounded = int(signed_UK[:, groups.classes_U].isinf().sum()) == len(groups.classes_U)
    margin = max(distance - radius, 0.0) if compact and apart else 0.0
    return Separation(
        compact_loss=compact_loss,
        margin_loss=margin_loss,
        largest_dispersion=2 * radius if compact else float("inf"),
        smallest_margin=margin,
        smallest_gap=2 * margin if all_bounded else 0.0,
    )
