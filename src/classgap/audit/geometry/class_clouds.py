"""Location and spread of each class's features, in one pass over the features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from classgap.audit._types import Floats
from classgap.audit.geometry.centroids import LARGE
from classgap.audit.io.rows import Matrix, read_rows
from classgap.audit.metrics.class_order import ClassOrder
from classgap.functional import class_margins, squared_norm

# Distances within a class are computed to at most this many of its samples, those farthest from the class mean. The
# most distant pairs are among them, and a class of 25,000 samples does not need 25,000² distances.
OUTERMOST = 1024
# In more than LARGE entries of features, the distances to 1024 samples would take longer than all else. The most
# distant pair is rarely missed among the outermost 32, and the mean of the distances to them is taken over 128 samples.
FEW_OUTERMOST = 32
FEW_SAMPLES = 128


@dataclass(frozen=True)
class ClassClouds:
    """Statistics of each class's features; NaN for classes without samples (spread and distances: with fewer than two).

    Attributes:
        centroids_KD: μ̂_k, zeros for unseen classes.
        mean_norm_K: ‖μ̂_k‖.
        size_K: class mean of ‖f‖², which is r_k² of MR² Prop. 2 for p = 2.
        spread_K: ‖ŝ_k‖, with n - 1 in the denominator.
        dispersion_K: largest distance within the class (LMDL Def. 4.1).
        max_intra_distance_K: class mean of max_{x⁺} ‖φ(x) - φ(x⁺)‖ / max ‖φ‖ (ELM Fig. 4).
    """

    centroids_KD: Tensor
    mean_norm_K: Floats
    size_K: Floats
    spread_K: Floats
    dispersion_K: Floats
    max_intra_distance_K: Floats

    @property
    def spread_to_norm_K(self) -> Floats:
        """‖ŝ_k‖ / ‖μ̂_k‖ (MR² Discussion 3); NaN where the mean is zero."""
        return self.spread_K / np.where(self.mean_norm_K > 0, self.mean_norm_K, np.nan)

    @property
    def gamma_K(self) -> Floats:
        """γ_k with mean 1 that MR² would assign to these features (Eq. 1); NaN for unseen classes."""
        unseen_K = np.isnan(self.size_K)
        gamma_K = class_margins(torch.from_numpy(np.where(unseen_K, 0, self.size_K))).numpy()
        return np.where(unseen_K, np.nan, gamma_K)


def class_clouds(features_ND: Matrix, order: ClassOrder) -> ClassClouds:
    """Compute the statistics of each class.

    >>> clouds = class_clouds(torch.tensor([[1.0, 0.0], [3.0, 0.0]]), ClassOrder.from_labels(np.array([0, 0]), 1))
    >>> clouds.mean_norm_K.item(), clouds.dispersion_K.item(), round(clouds.spread_K.item() ** 2, 3)
    (2.0, 2.0, 2.0)
    """
    classes = len(order.support_K)
    kind = torch.promote_types(features_ND.dtype, torch.float32)
    centroids_KD = torch.zeros(classes, features_ND.shape[1], dtype=kind)
    statistics = {
        name: np.full(classes, np.nan) for name in ("norm", "size", "spread", "dispersion", "max_intra_distance")
    }
    longest, limit = 0.0, outermost(*features_ND.shape)
    for k, rows in order.rows():
        features_nD = read_rows(features_ND, rows).to(kind)
        squares_n = squared_norm(features_nD)
        centroid_D = features_nD.mean(dim=0)
        centroids_KD[k] = centroid_D
        statistics["norm"][k] = float(torch.linalg.vector_norm(centroid_D))
        statistics["size"][k] = float(squares_n.mean())
        longest = max(longest, float(squares_n.max()))
        if len(rows) > 1:
            # Centering before the Gram product avoids cancellation.
            deviations_nD = features_nD.sub_(centroid_D)
            deviation_squares_n = squared_norm(deviations_nD)
            statistics["spread"][k] = float((deviation_squares_n.sum() / (len(rows) - 1)).sqrt())
            reach = _reach(deviations_nD, deviation_squares_n, limit)
            statistics["dispersion"][k], statistics["max_intra_distance"][k] = reach
    if longest > 0:
        statistics["max_intra_distance"] /= np.sqrt(longest)
    return ClassClouds(
        centroids_KD=centroids_KD,
        mean_norm_K=statistics["norm"],
        size_K=statistics["size"],
        spread_K=statistics["spread"],
        dispersion_K=statistics["dispersion"],
        max_intra_distance_K=statistics["max_intra_distance"],
    )


def outermost(samples: int, columns: int) -> int:
    """Return the number of samples of a class that distances are computed to."""
    return OUTERMOST if samples * columns <= LARGE else FEW_OUTERMOST


def _reach(deviations_nD: Tensor, squares_n: Tensor, limit: int) -> tuple[float, float]:
    """Maximum and mean over samples of the distance to the farthest sample of the class."""
    size = len(squares_n)
    if limit == OUTERMOST or size <= FEW_SAMPLES:
        reach_n = farthest_distances(deviations_nD, squares_n, limit)
        return float(reach_n.max()), float(reach_n.mean())
    chosen = torch.cat([squares_n.topk(limit).indices, torch.arange(0, size, -(-size // FEW_SAMPLES))])
    reach = farthest_distances(deviations_nD, squares_n, limit, chosen)
    return float(reach.max()), float(reach[limit:].mean())


def farthest_distances(
    deviations_nD: Tensor, squares_n: Tensor, limit: int = OUTERMOST, chosen: Tensor | None = None
) -> Tensor:
    """Distance of each sample to the farthest of the ``limit`` outermost samples, (n,).

    Args:
        deviations_nD: samples minus their mean.
        squares_n: squared norms of the deviations.
        limit: number of outermost samples to compare with.
        chosen: samples whose distance is computed, by default all.

    >>> farthest_distances(torch.tensor([[-1.0], [0.0], [3.0]]), torch.tensor([1.0, 0.0, 9.0])).tolist()
    [4.0, 3.0, 4.0]
    """
    outer_m = squares_n.topk(min(limit, len(squares_n))).indices
    doubled_Dm, outer_squares_m = (2 * deviations_nD.index_select(0, outer_m)).T, squares_n[outer_m]
    if chosen is not None:
        deviations_nD, squares_n = deviations_nD.index_select(0, chosen), squares_n[chosen]
    far_n = torch.zeros_like(squares_n)
    for start in range(0, len(squares_n), 4096):
        part = slice(start, start + 4096)
        between = squares_n[part, None] + outer_squares_m - deviations_nD[part] @ doubled_Dm
        far_n[part] = between.amax(dim=1)
    return far_n.clamp(min=0).sqrt()
