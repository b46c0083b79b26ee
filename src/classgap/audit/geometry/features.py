"""Metrics of features and head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from classgap.audit._types import Floats, Integers
from classgap.audit.geometry.boundaries import Boundaries, build_scorer, measure_boundaries
from classgap.audit.geometry.centroids import centroid_agreement, nearest_centroids
from classgap.audit.geometry.class_clouds import OUTERMOST, ClassClouds, class_clouds, outermost
from classgap.audit.geometry.head import HeadGeometry, head_geometry
from classgap.audit.io.predictions import Predictions
from classgap.audit.metrics.class_order import ClassOrder
from classgap.audit.results import FeatureSummary, Notice
from classgap.audit.stats.rank_correlation import rank_correlation


@dataclass(frozen=True)
class FeatureMetrics:
    """Metrics of features and head; ``None`` where features or head were not given.

    Attributes:
        clouds: location and spread of each class's features.
        nearest_Km: classes with the nearest means.
        nearest_distance_Km: distances to these means.
        edges: distances to decision boundaries.
        midpoint_K: half the distance between the mean of a class and that of the class across its nearest boundary.
        head: norms and angles of the head's rows.
        summary: metrics over all classes.
        notices: metrics that could not be computed, and why.
    """

    clouds: ClassClouds | None = None
    nearest_Km: Integers | None = None
    nearest_distance_Km: Floats | None = None
    edges: Boundaries | None = None
    midpoint_K: Floats | None = None
    head: HeadGeometry | None = None
    summary: FeatureSummary | None = None
    notices: tuple[Notice, ...] = ()


def measure_features(
    data: Predictions, order: ClassOrder, accuracy_K: Floats, rng: np.random.Generator
) -> FeatureMetrics:
    """Compute all metrics for which the inputs are given."""
    if data.features_ND is None and data.weight_KD is None:
        return FeatureMetrics()
    head = None if data.weight_KD is None else head_geometry(data.weight_KD)
    clouds, nearest, distances, edges, midpoint, agreement = None, None, None, None, None, None
    notices: list[Notice] = []
    if data.features_ND is not None:
        clouds = class_clouds(data.features_ND, order)
        limit = outermost(*data.features_ND.shape)
        if limit < OUTERMOST and int(order.support_K.max()) > limit:
            notices.append(Notice("distances-sampled", {"outermost": limit}))
        nearest, distances = nearest_centroids(clouds.centroids_KD, order.seen_U)
        agreement = centroid_agreement(data.features_ND, clouds.centroids_KD, order.seen_U, data.predictions_N, rng)
        if data.weight_KD is not None:
            scorer = build_scorer(data, rng)
            if scorer is not None:
                centroids = clouds.centroids_KD.to(data.weight_KD.dtype)
                edges = measure_boundaries(scorer, centroids, order, data.weight_KD, data.bias_K)
                midpoint = _midpoints(clouds, edges.facing_K, order)
            else:
                notices.append(Notice("head-does-not-fit"))
    return FeatureMetrics(
        clouds=clouds,
        nearest_Km=nearest,
        nearest_distance_Km=distances,
        edges=edges,
        midpoint_K=midpoint,
        head=head,
        summary=_summary(clouds, head, agreement, accuracy_K, order, data.class_names),
        notices=tuple(notices),
    )


def describe_clouds(clouds: ClassClouds, order: ClassOrder, accuracy_K: Floats, names: Sequence[str]) -> FeatureMetrics:
    """Return the metrics that follow from the statistics of each class alone."""
    nearest, distances = nearest_centroids(clouds.centroids_KD, order.seen_U)
    return FeatureMetrics(
        clouds=clouds,
        nearest_Km=nearest,
        nearest_distance_Km=distances,
        summary=_summary(clouds, None, None, accuracy_K, order, names),
    )


def _midpoints(clouds: ClassClouds, facing_K: Integers, order: ClassOrder) -> Floats:
    usable_K = (facing_K >= 0) & (order.support_K > 0) & (order.support_K[facing_K] > 0)
    apart_KD = clouds.centroids_KD - clouds.centroids_KD[torch.from_numpy(np.where(usable_K, facing_K, 0))]
    return np.where(usable_K, torch.linalg.vector_norm(apart_KD, dim=1).double().numpy() / 2, np.nan)


def _summary(
    clouds: ClassClouds | None,
    head: HeadGeometry | None,
    agreement: float | None,
    accuracy_K: Floats,
    order: ClassOrder,
    names: Sequence[str],
) -> FeatureSummary:
    spread_to_norm = within_between = norm_variation = None
    if clouds is not None:
        means_UD = clouds.centroids_KD[torch.from_numpy(order.seen_U)]
        from_center_U = torch.linalg.vector_norm(means_UD - means_UD.mean(dim=0), dim=1).double().numpy()
        between = float((from_center_U**2).mean())
        spread_to_norm, within = _known_mean(clouds.spread_to_norm_K), _known_mean(clouds.spread_K**2)
        within_between = within / between if within is not None and between > 0 else None
        norm_variation = _variation(from_center_U)
    pair = None if head is None or head.angle_pair is None else head.angle_pair
    return FeatureSummary(
        mean_spread_to_norm=spread_to_norm,
        within_between=within_between,
        centroid_agreement=agreement,
        spread_accuracy=None if clouds is None else rank_correlation(clouds.spread_K, accuracy_K),
        weight_norm_accuracy=None if head is None else rank_correlation(head.weight_norm_K, accuracy_K),
        weight_norm_variation=None if head is None else _variation(head.weight_norm_K),
        mean_norm_variation=norm_variation,
        angle=None if head is None else head.angle,
        angle_pair=None if pair is None else (names[pair[0]], names[pair[1]]),
        mean_cosine=None if head is None else head.mean_cosine,
        std_cosine=None if head is None else head.std_cosine,
    )


def _known_mean(values_K: Floats) -> float | None:
    known = values_K[~np.isnan(values_K)]
    return float(known.mean()) if len(known) else None


def _variation(values: Floats) -> float | None:
    mean = float(values.mean())
    return float(values.std() / mean) if mean > 0 else None
