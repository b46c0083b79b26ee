"""Where each class's features lie and how far they reach: one pass over the features, class by class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from classgap.audit._types import Floats
from classgap.audit.metrics.class_order import ClassOrder
from classgap.functional import class_margins, squared_norm

# Distances within a class are taken to at most this many of its samples, those farthest from the class mean: among
# them are the ends of the longest pairs, and a class of 25,000 samples does not need 25,000² distances.
OUTERMOST = 1024


@dataclass(frozen=True)
class ClassClouds:
    """Figures of each class's features, NaN where a class has no samples (or, for spread and distances, only one).

    Attributes:
        centroids_KD: μ̂_k, zeros for unseen classes.
        mean_norm_K: ‖μ̂_k‖.
        size_K: class mean of ‖f‖², which is r_k² of MR² Prop. 2 for p = 2.
        spread_K: ‖ŝ_k‖, by n - 1.
        dispersion_K: largest distance within the class (LMDL Def. 4.1).
        farthest_K: class mean of max_{x⁺} ‖φ(x) - φ(x⁺)‖ / max ‖φ‖ (ELM Fig. 4).
    """

    centroids_KD: Tensor
    mean_norm_K: Floats
    size_K: Floats
    spread_K: Floats
    dispersion_K: Floats
    max_intra_distance_K: Floats

    @property
    def spread_to_norm_K(self) -> Floats:
        """‖ŝ_k‖ / ‖μ̂_k‖ (MR² Discussion 3); NaN where the mean is at the origin."""
        return self.spread_K / np.where(self.mean_norm_K > 0, self.mean_norm_K, np.nan)

    @property
    def gamma_K(self) -> Floats:
        """γ_k with mean 1 that MR² would assign from these features (Eq. 1); NaN for unseen classes."""
        unseen_K = np.isnan(self.size_K)
        gamma_K = class_margins(torch.from_numpy(np.where(unseen_K, 0, self.size_K))).numpy()
        return np.where(unseen_K, np.nan, gamma_K)


def class_clouds(features_ND: Tensor, order: ClassOrder) -> ClassClouds:
    """Measure every class.

    >>> clouds = class_clouds(torch.tensor([[1.0, 0.0], [3.0, 0.0]]), ClassOrder.from_labels(np.array([0, 0]), 1))
    >>> clouds.mean_norm_K.item(), clouds.dispersion_K.item(), round(clouds.spread_K.item() ** 2, 3)
    (2.0, 2.0, 2.0)
    """
    classes = len(order.support_K)
    kind = torch.promote_types(features_ND.dtype, torch.float32)
    centroids_KD = torch.zeros(classes, features_ND.shape[1], dtype=kind)
    figures = {
        name: np.full(classes, np.nan) for name in ("norm", "size", "spread", "dispersion", "max_intra_distance")
    }
    longest = 0.0
    for k, rows in order.rows():
        features_nD = features_ND[torch.from_numpy(rows)].to(kind)
        squares_n = squared_norm(features_nD)
        centroid_D = features_nD.mean(dim=0)
        centroids_KD[k] = centroid_D
        figures["norm"][k] = float(torch.linalg.vector_norm(centroid_D))
        figures["size"][k] = float(squares_n.mean())
        longest = max(longest, float(squares_n.max()))
        if len(rows) > 1:
            # Differences before squares: centered by the mean, no Gram product can lose the distances.
            deviations_nD = features_nD.sub_(centroid_D)
            deviation_squares_n = squared_norm(deviations_nD)
            figures["spread"][k] = float((deviation_squares_n.sum() / (len(rows) - 1)).sqrt())
            reach_n = farthest_distances(deviations_nD, deviation_squares_n)
            figures["dispersion"][k], figures["max_intra_distance"][k] = float(reach_n.max()), float(reach_n.mean())
    if longest > 0:
        figures["max_intra_distance"] /= np.sqrt(longest)
    return ClassClouds(
        centroids_KD=centroids_KD,
        mean_norm_K=figures["norm"],
        size_K=figures["size"],
        spread_K=figures["spread"],
        dispersion_K=figures["dispersion"],
        max_intra_distance_K=figures["max_intra_distance"],
    )


def farthest_distances(deviations_nD: Tensor, squares_n: Tensor, limit: int = OUTERMOST) -> Tensor:
    """Distance of each sample to the farthest of the samples, looked for among the ``limit`` outermost, (n,).

    Args:
        deviations_nD: samples minus their mean.
        squares_n: their squared lengths.
        limit: how many of the outermost samples are compared with.

    >>> farthest_distances(torch.tensor([[-1.0], [0.0], [3.0]]), torch.tensor([1.0, 0.0, 9.0])).tolist()
    [4.0, 3.0, 4.0]
    """
    outer_m = squares_n.topk(min(limit, len(squares_n))).indices
    far_n = torch.zeros_like(squares_n)
    for start in range(0, len(squares_n), 4096):
        part = slice(start, start + 4096)
        between = squares_n[part, None] + squares_n[outer_m] - 2 * deviations_nD[part] @ deviations_nD[outer_m].T
        far_n[part] = between.amax(dim=1)
    return far_n.clamp(min=0).sqrt()
