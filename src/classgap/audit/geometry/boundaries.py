"""Distances of samples and class means to the head's decision boundaries in feature space (LMDL Sec. 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from classgap.audit._types import Floats, Integers
from classgap.audit.geometry.centroids import pairwise_distances
from classgap.audit.io.predictions import Predictions
from classgap.audit.io.rows import row_chunks
from classgap.audit.metrics.class_order import ClassOrder
from classgap.functional.discriminative import SMALLEST_BOUNDARY

CHECKED_SAMPLES = 1000
MIN_AGREEMENT = 0.99  # features in half precision may flip a close prediction
SAME_SCORES = 1e-4  # of the largest score; allows for float32 rounding but not for half precision

Scorer = Callable[[Integers], Tensor]


@dataclass(frozen=True)
class Boundaries:
    """Distances to decision boundaries; NaN for unseen classes and where no boundary exists.

    Attributes:
        class_margin_K: smallest distance of the class's samples to one of its boundaries (LMDL Def. 4.2).
        centroid_margin_K: signed distance of the class mean to its nearest boundary (LMDL Eq. 4.6).
        facing_K: the class on the other side of that boundary, -1 if none.
    """

    class_margin_K: Floats
    centroid_margin_K: Floats
    facing_K: Integers


def build_scorer(data: Predictions, rng: np.random.Generator) -> Scorer | None:
    """Return a function that computes weight·f + bias of samples; ``None`` if that does not match the predictions.

    It does not for a cosine head or for features of another layer. If the logits equal these scores, the function looks
    them up instead of computing them again.
    """
    features_ND, weight_KD, bias_K, logits_NK = data.features_ND, data.weight_KD, data.bias_K, data.logits_NK
    assert features_ND is not None
    assert weight_KD is not None
    rows = np.arange(len(data))
    if len(data) > CHECKED_SAMPLES:
        rows = np.sort(rng.choice(rows, CHECKED_SAMPLES, replace=False))
    computed = _scores(features_ND[torch.from_numpy(rows)], weight_KD, bias_K)
    if (computed.argmax(dim=1).numpy() == data.predictions_N[rows]).mean() < MIN_AGREEMENT:
        return None
    if logits_NK is not None:
        apart = (logits_NK[torch.from_numpy(rows)].to(computed.dtype) - computed).abs().max()
        if bool(apart <= SAME_SCORES * computed.abs().max()):
            return lambda samples: logits_NK[torch.from_numpy(samples)].to(weight_KD.dtype)
    return lambda samples: _scores(features_ND[torch.from_numpy(samples)], weight_KD, bias_K)


def measure_boundaries(
    scorer: Scorer, centroids_KD: Tensor, order: ClassOrder, weight_KD: Tensor, bias_K: Tensor | None
) -> Boundaries:
    """Measure the boundaries of each class, in chunks of classes so that each ‖w_c - w_i‖ is computed once.

    >>> W, features = torch.tensor([[1.0, 0.0], [-1.0, 0.0]]), torch.tensor([[3.0, 0.0], [1.0, 0.0], [-2.0, 5.0]])
    >>> order = ClassOrder.from_labels(np.array([0, 0, 1]), num_classes=2)
    >>> means = torch.tensor([[2.0, 0.0], [-2.0, 5.0]])
    >>> measured = measure_boundaries(lambda rows: features[rows] @ W.T, means, order, W, None)
    >>> measured.class_margin_K.tolist(), measured.centroid_margin_K.tolist(), measured.facing_K.tolist()
    ([1.0, 2.0], [2.0, 2.0], [1, 0])
    """
    classes = len(weight_KD)
    margin_K = torch.full((classes,), torch.inf)
    centroid_K = torch.full((classes,), torch.inf)
    facing_K = torch.full((classes,), -1)
    ends_K = np.cumsum(order.support_K)
    length_K = torch.linalg.vector_norm(weight_KD, dim=1)
    for part in row_chunks(len(order.seen_U), classes):
        own_U = torch.from_numpy(order.seen_U[part])
        apart_UK = pairwise_distances(weight_KD[own_U], weight_KD)
        # As in functional.signed_boundary_distance: equal rows, such as the class itself, have no boundary.
        none_UK = apart_UK <= SMALLEST_BOUNDARY * (length_K[own_U, None] + length_K)
        apart_UK[none_UK] = torch.nan
        center_UK = _signed(_scores(centroids_KD[own_U], weight_KD, bias_K), own_U, apart_UK)
        centroid_K[own_U], facing_K[own_U] = center_UK.min(dim=1)

        first, last = int(own_U[0]), int(own_U[-1])
        samples = order.order_N[ends_K[first] - order.support_K[first] : ends_K[last]]
        local = np.repeat(np.arange(len(own_U)), order.support_K[order.seen_U[part]])
        for rows in row_chunks(len(samples), sum(weight_KD.shape)):
            group_B = torch.from_numpy(local[rows])
            scores_BK = scorer(samples[rows])
            nearest_B = _signed(scores_BK, own_U[group_B], apart_UK[group_B]).abs_().amin(dim=1)
            margin_K.scatter_reduce_(0, own_U[group_B], nearest_B, reduce="amin")
    facing_K[centroid_K.isinf()] = -1
    return Boundaries(_finite(margin_K), _finite(centroid_K), facing_K.numpy())


def _scores(points_BD: Tensor, weight_KD: Tensor, bias_K: Tensor | None) -> Tensor:
    scores_BK = points_BD.to(weight_KD.dtype) @ weight_KD.T
    return scores_BK if bias_K is None else scores_BK + bias_K


def _signed(scores_BK: Tensor, own_B: Tensor, apart_BK: Tensor) -> Tensor:
    """Return ((w_c - w_i)·f + b_c - b_i) / ‖w_c - w_i‖, infinite where no boundary exists (LMDL Eq. 4.6)."""
    lead_BK = scores_BK.gather(1, own_B[:, None]) - scores_BK
    return lead_BK.div_(apart_BK).nan_to_num_(nan=torch.inf)


def _finite(values_K: Tensor) -> Floats:
    return torch.where(values_K.isinf(), torch.nan, values_K).double().numpy()
