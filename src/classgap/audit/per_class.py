"""One record a class, from columns of figures."""

from __future__ import annotations

import numpy as np

from classgap.audit._types import Floats
from classgap.audit.diagnosis.causes import Evidence
from classgap.audit.geometry.features import FeatureMetrics
from classgap.audit.io.predictions import Predictions
from classgap.audit.metrics.accuracy import ClassCounts
from classgap.audit.metrics.calibration import calibration_errors
from classgap.audit.metrics.class_order import ClassOrder, class_distributions
from classgap.audit.metrics.groups import Grouping
from classgap.audit.metrics.scores import SampleScores
from classgap.audit.results import ClassResult, Distribution, Interval
from classgap.audit.stats.intervals import wilson_bounds


def class_results(
    data: Predictions,
    counts: ClassCounts,
    order: ClassOrder,
    scores: SampleScores | None,
    figures: FeatureMetrics,
    groupings: list[Grouping],
    evidence: Evidence,
) -> list[ClassResult]:
    """Every class, without a diagnosis yet."""
    columns = {
        **_count_columns(data, counts, evidence),
        **_score_columns(data, order, scores),
        **_feature_columns(figures),
    }
    low_K, high_K = wilson_bounds(counts.correct_K, counts.support_K, evidence.confidence_level)
    logit_margins: list[Distribution | None] = [None] * data.num_classes
    if scores is not None and data.num_classes > 1 and data.logit_margins:
        logit_margins = class_distributions(scores.logit_margin_N, order)
    nearest_K = np.full(data.num_classes, -1) if figures.nearest_Km is None else figures.nearest_Km[:, 0]
    groups_of: list[list[Grouping]] = [[] for _ in data.class_names]
    for group in groupings:
        for k in group.members.tolist():
            groups_of[k].append(group)
    doubtful_K, accuracy_K = evidence.label_issues_K, counts.accuracy_K
    results = []
    for k, name in enumerate(data.class_names):
        seen = bool(counts.support_K[k])
        accuracy = float(accuracy_K[k]) if seen else None
        results.append(
            ClassResult(
                index=k,
                name=name,
                status="ok" if seen else "unseen",
                support=int(counts.support_K[k]),
                accuracy=accuracy,
                interval=Interval(float(low_K[k]), float(high_K[k])) if seen else None,
                recall=accuracy,
                predicted=int(counts.predicted_K[k]),
                group=next((group.name for group in groups_of[k] if group.kind == "thirds"), None),
                groups=tuple(group.name for group in groups_of[k]),
                logit_margin=logit_margins[k],
                nearest_class=data.class_names[nearest_K[k]] if nearest_K[k] >= 0 else None,
                confusions=evidence.confusions[k],
                label_issues=int(doubtful_K[k]) if doubtful_K is not None and seen else None,
                diagnosis=(),
                **{
                    column: float(values_K[k]) if values_K is not None and np.isfinite(values_K[k]) else None
                    for column, values_K in columns.items()
                },
            )
        )
    return results


def _count_columns(data: Predictions, counts: ClassCounts, evidence: Evidence) -> dict[str, Floats | None]:
    return {
        "precision": counts.precision_K,
        "train_count": data.train_counts_K,
        "train_accuracy": evidence.train_accuracy_K,
    }


def _score_columns(data: Predictions, order: ClassOrder, scores: SampleScores | None) -> dict[str, Floats | None]:
    if scores is None:
        return {"calibration_error": None, "margin": None}
    correct_N = data.targets_N == data.predictions_N
    return {
        # By predicted class: among samples *of* a hard class even a calibrated model is right too rarely.
        "calibration_error": calibration_errors(scores.confidence_N, correct_N, data.predictions_N, data.num_classes),
        "margin": order.mean(scores.output_margin_N),
    }


def _feature_columns(figures: FeatureMetrics) -> dict[str, Floats | None]:
    clouds, edges = figures.clouds, figures.edges
    return {
        "mean_norm": None if clouds is None else clouds.mean_norm_K,
        "spread": None if clouds is None else clouds.spread_K,
        "spread_to_norm": None if clouds is None else clouds.spread_to_norm_K,
        "gamma": None if clouds is None else clouds.gamma_K,
        "dispersion": None if clouds is None else clouds.dispersion_K,
        "max_intra_distance": None if clouds is None else clouds.max_intra_distance_K,
        "weight_norm": None if figures.head is None else figures.head.weight_norm_K,
        "class_margin": None if edges is None else edges.class_margin_K,
        "centroid_margin": None if edges is None else edges.centroid_margin_K,
        "nearest_distance": None if figures.nearest_distance_Km is None else figures.nearest_distance_Km[:, 0],
    }
