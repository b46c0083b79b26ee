"""Build an audit from checked predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from classgap.audit._types import Floats, Integers
from classgap.audit.audit import Audit
from classgap.audit.diagnosis.budget import Assignment
from classgap.audit.diagnosis.diagnose import ROUNDING, diagnose
from classgap.audit.diagnosis.evidence import Evidence
from classgap.audit.diagnosis.examined import examined_rows
from classgap.audit.diagnosis.loss_trend import LossTrend
from classgap.audit.diagnosis.offset_change import offset_change
from classgap.audit.figures import ClassResult
from classgap.audit.geometry.embedding_map import STEPS, feature_map, worst_neighbors
from classgap.audit.geometry.features import FeatureMetrics, measure_features
from classgap.audit.io.hierarchy import Superclasses, check_superclasses
from classgap.audit.io.labels import encode
from classgap.audit.io.predictions import Predictions
from classgap.audit.metrics.accuracy import ClassCounts
from classgap.audit.metrics.class_order import ClassOrder
from classgap.audit.metrics.confusions import confusion_pairs, count_confusions, top_confusions
from classgap.audit.metrics.gaps import compute_gap, mean_interval
from classgap.audit.metrics.groups import Grouping, build_groups
from classgap.audit.metrics.relabeling import numbering_notice
from classgap.audit.metrics.score_summary import ScoreSummary
from classgap.audit.metrics.slices import slice_result
from classgap.audit.metrics.superclasses import superclass_result
from classgap.audit.metrics.valid_scores import valid_ranks
from classgap.audit.metrics.validity import Validity, valid_result
from classgap.audit.per_class import ClassInputs, class_results
from classgap.audit.results import Confusion, FeatureMap, Gap, GroupResult, Notice, Overall
from classgap.audit.samples import Samples
from classgap.audit.settings import AuditSettings
from classgap.audit.slice_results import SliceResult
from classgap.audit.stats.intervals import resample_accuracies, wilson_interval
from classgap.audit.stats.pairing import count_outcomes
from classgap.audit.sums import MetricSums
from classgap.audit.superclass_results import SuperclassResult
from classgap.audit.valid_results import ValidResult

LARGE_SAMPLES = 200_000  # t-SNE of all points of the map would take as long as the scores of so many samples
LARGE_MAP_POINTS = 300
LARGE_MAP_STEPS = 500  # enough for so few points


def build_audit(
    data: Predictions,
    settings: AuditSettings,
    *,
    ranking_K: Floats | None = None,
    baseline_right_N: NDArray[np.bool_] | None = None,
    groups: Mapping[str, Sequence[Any]] | Sequence[Any] | None = None,
    superclasses: Any = None,
    hierarchy: Any = None,
    sums: MetricSums | None = None,
) -> Audit:
    """Compute every metric that the inputs allow.

    Args:
        data: predictions.
        settings: settings.
        ranking_K: accuracies that rank the thirds, if not the model's own.
        baseline_right_N: which of these samples the ranking model predicts correctly, if known.
        groups: additional groups.
        superclasses: superclass → classes.
        hierarchy: child → parent.
        sums: sums over samples, if the scores and features themselves were not kept.
    """
    parents = check_superclasses(superclasses, hierarchy, data.class_names)
    data = data.scored()
    rng = np.random.default_rng(settings.seed)
    counts = ClassCounts.from_labels(data.targets_N, data.predictions_N, data.num_classes)
    order = ClassOrder.from_labels(data.targets_N, data.num_classes)
    seen_U = order.seen_U
    replicates_RU = resample_accuracies(counts.correct_K[seen_U], counts.support_K[seen_U], settings.n_resamples, rng)
    groupings = build_groups(
        counts.accuracy_K,
        ranking_K=ranking_K,
        train_counts_K=data.train_counts_K,
        cuts=settings.frequency_cuts,
        groups=groups,
        names=data.class_names,
    )
    if sums is None:
        figures = measure_features(data, order, counts.accuracy_K, rng)
        summary = _summarize(data, order, settings)
    else:
        figures = sums.features(order, counts.accuracy_K, data.class_names)
        summary = sums.scores(counts, settings.top_k)
    assignment = _examine(data, order, settings) if settings.diagnose else None
    confusions = top_confusions(
        data.targets_N, data.predictions_N, data.class_names, counts.support_K, settings.confusions
    )
    evidence = _evidence(data, counts, figures, confusions, assignment, settings)
    hard_U = next((group.members for group in groupings if group.name == "hard"), np.empty(0, dtype=np.int64))
    causes = diagnose(evidence, hard_U, counts.balanced_accuracy) if settings.diagnose else {}
    classes = class_results(ClassInputs(data, counts, order, summary, figures, groupings, evidence, causes, assignment))
    shared_KBA = None
    if baseline_right_N is not None:
        right_N = data.targets_N == data.predictions_N
        shared_KBA = count_outcomes(data.targets_N, baseline_right_N, right_N, classes=data.num_classes)
    gap = compute_gap(
        counts,
        replicates_RU,
        data.class_names,
        ranking_K=ranking_K,
        shared_KBA=shared_KBA,
        confidence_level=settings.confidence_level,
        rng=rng,
    )
    return Audit(
        name=data.name,
        overall=_overall(data, counts, summary, replicates_RU, settings),
        classes=classes,
        groups={group.name: _group(group, classes, counts, replicates_RU, settings) for group in groupings},
        gap=gap,
        pairs=confusion_pairs(
            data.targets_N,
            data.predictions_N,
            data.class_names,
            counts.support_K,
            settings.pairs,
            settings.confidence_level,
        ),
        error_budget=None if assignment is None else assignment.overall(settings.confidence_level),
        features=figures.summary,
        map=_map(data, order, classes, settings),
        rank_by="own" if ranking_K is None else "baseline",
        settings=settings,
        notices=(
            *_notices(data, counts, figures, accumulated=sums is not None),
            *_sampled(data, assignment, settings),
            *([Notice("unpaired-ranking")] if ranking_K is not None and baseline_right_N is None else []),
            *([] if parents is None else parents.notices),
        ),
        samples=Samples(data.targets_N, data.predictions_N, data.index_N, data.ids),
        offset_change=None
        if assignment is None
        else offset_change(assignment.data, assignment.found, settings.confidence_level),
        source=data.source,
        valid=_valid(data, counts, groupings, gap, settings, ranking_K, baseline_right_N),
        slices=_slices(data, counts, hard_U, settings),
        superclasses=None if parents is None else _superclasses(data, counts, parents, settings),
    )


def _valid(
    data: Predictions,
    counts: ClassCounts,
    groupings: Sequence[Grouping],
    gap: Gap,
    settings: AuditSettings,
    ranking_K: Floats | None,
    baseline_right_N: NDArray[np.bool_] | None,
) -> ValidResult | None:
    if data.valid_labels is None:
        return None
    validity = Validity.from_sets(data.targets_N, data.predictions_N, data.valid_labels)
    return valid_result(
        validity,
        data.class_names,
        groupings,
        gap,
        settings,
        ranking_K=counts.accuracy_K if ranking_K is None else ranking_K,
        ranking_right_N=validity.labeled_N if ranking_K is None else baseline_right_N,
        rank_N=None
        if data.scores is None or data.logits_NK is None
        else valid_ranks(data.logits_NK, data.valid_labels, data.targets_N, data.scores.rank_N),
        confidence_N=None if data.scores is None else data.scores.confidence_N,
    )


def _slices(data: Predictions, counts: ClassCounts, hard_U: Integers, settings: AuditSettings) -> SliceResult | None:
    if not data.slices:
        return None
    failing = hard_U[counts.accuracy_K[hard_U] < counts.balanced_accuracy - ROUNDING]
    correct_N = data.targets_N == data.predictions_N
    return slice_result(data.targets_N, correct_N, data.slices, data.class_names, failing, settings.confidence_level)


def _superclasses(
    data: Predictions, counts: ClassCounts, parents: Superclasses, settings: AuditSettings
) -> SuperclassResult:
    return superclass_result(
        data.targets_N, data.predictions_N, counts, data.class_names, parents, settings.confidence_level
    )


def _overall(
    data: Predictions,
    counts: ClassCounts,
    summary: ScoreSummary | None,
    replicates_RU: Floats,
    settings: AuditSettings,
) -> Overall:
    seen_U = np.flatnonzero(counts.seen_K)
    return Overall(
        n_samples=len(data),
        num_classes=data.num_classes,
        seen_classes=len(seen_U),
        accuracy=counts.accuracy,
        interval=wilson_interval(float(counts.correct_K.sum()), len(data), settings.confidence_level),
        balanced_accuracy=counts.balanced_accuracy,
        balanced_interval=mean_interval(
            replicates_RU,
            np.arange(len(seen_U)),
            counts.correct_K[seen_U],
            counts.support_K[seen_U],
            settings.confidence_level,
        ),
        macro_f1=counts.macro_f1,
        top_k={1: counts.accuracy} if summary is None else summary.top_k,
        calibration_error=None if summary is None else _known(summary.calibration_error),
        margin=None if summary is None else _known(summary.margin),
    )


def _summarize(data: Predictions, order: ClassOrder, settings: AuditSettings) -> ScoreSummary | None:
    if data.scores is None:
        return None
    return ScoreSummary.from_samples(
        data.scores, data.targets_N, data.predictions_N, order, settings.top_k, logit_margins=data.logit_margins
    )


def _examine(data: Predictions, order: ClassOrder, settings: AuditSettings) -> Assignment:
    """Assign errors to changes, in a part of the samples if there are many."""
    rows = examined_rows(order, settings.diagnosis_samples, settings.seed)
    if rows is None or (data.logits_NK is None and data.features_ND is None):
        return Assignment.from_predictions(data, settings.seed)
    part = data.take(rows)
    if part.index_N is None:
        part = replace(part, index_N=rows)  # lists of samples name rows of the whole test set
    return Assignment.from_predictions(part, settings.seed)


def _sampled(data: Predictions, assignment: Assignment | None, settings: AuditSettings) -> list[Notice]:
    """Notices about metrics that use a part of the samples because there are many."""
    notices = []
    if assignment is not None and len(assignment.data) < len(data):
        notices.append(Notice("diagnosis-sampled", {"examined": len(assignment.data), "samples": len(data)}))
    points = _map_points(data, settings)
    if data.features_ND is not None and settings.map != "none" and points < settings.map_points:
        notices.append(Notice("map-sampled", {"points": points}))
    return notices


def _evidence(
    data: Predictions,
    counts: ClassCounts,
    figures: FeatureMetrics,
    confusions: list[tuple[Confusion, ...]],
    assignment: Assignment | None,
    settings: AuditSettings,
) -> Evidence:
    train = None
    if data.train_targets_M is not None and data.train_predictions_M is not None:
        train = ClassCounts.from_labels(data.train_targets_M, data.train_predictions_M, data.num_classes)
    trend = None
    if data.train_losses_E is not None and data.learning_rates_E is not None:
        trend = LossTrend.from_epochs(data.train_losses_E, data.learning_rates_E)
    return Evidence(
        names=data.class_names,
        support_K=counts.support_K,
        correct_K=counts.correct_K,
        confusions=confusions,
        confused_back=_confused_back(data, confusions),
        train_counts_K=data.train_counts_K,
        tail_below=settings.frequency_cuts[1],
        spread_K=None if figures.clouds is None else figures.clouds.spread_K,
        nearest_Km=figures.nearest_Km,
        train_accuracy_K=None if train is None else train.accuracy_K,
        train_support_K=None if train is None else train.support_K,
        loss_trend=trend,
        doubted_K=None if assignment is None else assignment.doubted_K,
        fixed_K={} if assignment is None else assignment.fixed_K,
        broken_K={} if assignment is None else assignment.broken_K,
        lost_K=None if assignment is None else assignment.lost_K,
        confidence_level=settings.confidence_level,
        valid_K=None if assignment is None else assignment.valid_K,
        examined_support_K=None
        if assignment is None
        else np.bincount(assignment.data.targets_N, minlength=data.num_classes),
        examined_errors_K=None if assignment is None else assignment.errors_K,
        has_head=data.weight_KD is not None,
    )


def _confused_back(data: Predictions, confusions: list[tuple[Confusion, ...]]) -> list[int]:
    """How often the most frequent confusion of each class is predicted as the class."""
    place = {name: k for k, name in enumerate(data.class_names)}
    wanted = {place[found[0].name] * data.num_classes + k: k for k, found in enumerate(confusions) if found}
    true, predicted, count = count_confusions(data.targets_N, data.predictions_N, data.num_classes)
    back_K = np.zeros(data.num_classes, dtype=np.int64)
    code = true * data.num_classes + predicted
    for i in np.flatnonzero(np.isin(code, list(wanted))).tolist():
        back_K[wanted[int(code[i])]] = count[i]
    return back_K.tolist()


def _group(
    group: Grouping,
    classes: Sequence[ClassResult],
    counts: ClassCounts,
    replicates_RU: Floats,
    settings: AuditSettings,
) -> GroupResult:
    seen = [k for k in group.members.tolist() if counts.support_K[k]]
    seen_U = np.flatnonzero(counts.seen_K)
    interval = None
    if seen:
        columns = np.searchsorted(seen_U, seen)
        correct_U, support_U = counts.correct_K[seen_U], counts.support_K[seen_U]
        interval = mean_interval(replicates_RU, columns, correct_U, support_U, settings.confidence_level)
    accuracies = counts.accuracy_K[seen]
    return GroupResult(
        name=group.name,
        kind=group.kind,
        accuracy=float(accuracies.mean()) if seen else None,
        interval=interval,
        min=float(accuracies.min()) if seen else None,
        max=float(accuracies.max()) if seen else None,
        support=int(counts.support_K[seen].sum()),
        members=tuple(classes[k].name for k in seen),
        unseen=len(group.members) - len(seen),
        margin=_mean([classes[k].margin for k in seen]),
        spread=_mean([classes[k].spread for k in seen]),
    )


def _map(
    data: Predictions, order: ClassOrder, classes: Sequence[ClassResult], settings: AuditSettings
) -> FeatureMap | None:
    if data.features_ND is None or settings.map == "none":
        return None
    if isinstance(settings.map, str):
        chosen = worst_neighbors(classes)
    else:
        chosen = encode("map", [str(entry) for entry in settings.map], data.class_names).tolist()
    return feature_map(
        data.features_ND,
        order,
        data.targets_N,
        data.predictions_N,
        data.class_names,
        chosen,
        points=_map_points(data, settings),
        seed=settings.seed,
        steps=LARGE_MAP_STEPS if len(data) > LARGE_SAMPLES else STEPS,
    )


def _map_points(data: Predictions, settings: AuditSettings) -> int:
    return min(settings.map_points, LARGE_MAP_POINTS) if len(data) > LARGE_SAMPLES else settings.map_points


def _notices(
    data: Predictions, counts: ClassCounts, figures: FeatureMetrics, *, accumulated: bool = False
) -> list[Notice]:
    notices = [*data.notices, *figures.notices]
    unseen = int((~counts.seen_K).sum())
    if unseen:
        notices.append(Notice("unseen-classes", {"unseen": unseen, "classes": data.num_classes}))
    if np.count_nonzero(counts.predicted_K) == 1 < np.count_nonzero(counts.seen_K):
        notices.append(Notice("constant-prediction", {"name": data.class_names[int(counts.predicted_K.argmax())]}))
    notices += numbering_notice(data.targets_N, data.predictions_N, counts, data.class_names)
    if accumulated:
        feature_dim = 0 if figures.clouds is None else figures.clouds.centroids_KD.shape[1]
        return [*notices, Notice("accumulated", {"feature_dim": feature_dim})]
    if data.logits_NK is None:
        others = (data.features_ND, data.train_counts_K, data.train_targets_M)
        alone = all(each is None for each in others)
        notices.append(Notice("only-predicted-labels") if alone else Notice("no-scores"))
    if data.features_ND is None and not any(notice.code.startswith("features-not") for notice in notices):
        notices.append(Notice("no-features"))
    return notices


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
