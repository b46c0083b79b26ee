"""Template variables of the audit page."""

from __future__ import annotations

from typing import Any

from classgap.audit.audit import Audit
from classgap.audit.results import Correlation, ErrorBudget, FeatureSummary
from classgap.report.advice import advice_parts, remedy_advice
from classgap.report.budget import budget_legend, class_budgets, segments, untried_changes
from classgap.report.charts import audit_charts
from classgap.report.charts.budget_chart import Bar, budget_chart, pattern_definitions, swatch
from classgap.report.class_table import audit_table
from classgap.report.confusion_table import confusion_table
from classgap.report.details import audit_details
from classgap.report.display_names import third_name
from classgap.report.formatting import (
    MISSING,
    format_count,
    format_level,
    format_number,
    format_p_value,
    format_percent,
    format_percent_interval,
)
from classgap.report.gap_rows import gap_rows
from classgap.report.label_sections import label_sections
from classgap.report.notes import audit_notes
from classgap.report.notices import notice_text
from classgap.report.ordering import THIRDS, failing_classes, order_groups
from classgap.report.summary import headline, offset_sentence, summarize_audit
from classgap.report.thumbnails import SamplesByNumber, thumbnail_section

MAX_FAILING = 100  # rows of the table of failing classes; dialogs show the diagnoses of the others
MAX_BARS = 15  # failing classes with a bar of their budget


def audit_page(audit: Audit, thumbnails: SamplesByNumber | None = None) -> dict[str, Any]:
    """Return the variables of ``audit.html``."""
    failing = failing_classes(audit.classes)
    with_margins = [entry for entry in audit.classes if entry.logit_margin is not None and entry.logit_margin.quantiles]
    return {
        "audit": audit,
        "data_sets": [audit_details(audit)],
        "headline": headline(audit),
        "summary": summarize_audit(audit),
        "notices": [notice_text(notice) for notice in audit.notices],
        "notes": audit_notes(audit),
        "level": format_level(audit.confidence_level),
        "charts": {
            "classes": audit_charts.class_chart(audit),
            "groups": audit_charts.group_chart(audit),
            "margins": audit_charts.margin_chart(audit),
            "boxes": audit_charts.box_chart(audit),
            "spread": audit_charts.spread_chart(audit),
            "weights": audit_charts.weight_chart(audit),
            "distances": audit_charts.farthest_chart(audit),
            "map": audit_charts.feature_map_chart(audit),
        },
        "thirds": {name: third_name(name, audit.rank_by) for name in THIRDS if name in audit.groups},
        "table": audit_table(audit),
        **_group_table(audit),
        "gap_rows": gap_rows(audit),
        "label_sections": label_sections(audit),
        "failing": failing[:MAX_FAILING],
        "more_failing": max(0, len(failing) - MAX_FAILING),
        "advice": {
            entry.index: advice_parts(entry.diagnosis[0], entry, audit.source) for entry in failing[:MAX_FAILING]
        },
        "offsets": offset_sentence(audit),
        "remedy": remedy_advice(audit.source),
        "budget": _budget_section(audit),
        "index_of": {name: i for i, name in enumerate(audit.class_names)},
        "boxes_show_all": len(with_margins) <= audit_charts.MAX_BOXES,
        "angle": _angle_sentence(audit.features),
        "correlation": _correlation_sentence(audit.features.spread_accuracy) if audit.features is not None else None,
        "feature_rows": _feature_rows(audit.features) if audit.features is not None else [],
        "matrix": confusion_table(audit),
        "only_labels": any(notice.code == "only-predicted-labels" for notice in audit.notices),
        "thumbnails": None if thumbnails is None else thumbnail_section(audit, thumbnails),
    }


def _group_table(audit: Audit) -> dict[str, Any]:
    """Headers and rows of the table of groups, without empty columns."""
    groups = order_groups(audit.groups)
    columns = {
        "Group": [group.name for group in groups],
        "Classes": [format_count(len(group.members)) for group in groups],
        "Support": [format_count(group.support) for group in groups],
        "Accuracy, %": [format_percent(group.accuracy) for group in groups],
        f"{format_level(audit.confidence_level)} CI": [format_percent_interval(group.interval) for group in groups],
        "Worst class, %": [format_percent(group.min) for group in groups],
        "Best class, %": [format_percent(group.max) for group in groups],
        "Margin": [format_number(group.margin) for group in groups],
        "Spread": [format_number(group.spread) for group in groups],
    }
    known = {header: cells for header, cells in columns.items() if any(cell != MISSING for cell in cells)}
    return {"group_headers": list(known), "group_rows": list(zip(*known.values(), strict=True))}


def _budget_section(audit: Audit) -> dict[str, Any] | None:
    """Variables of the section on the error budget; ``None`` without errors."""
    whole = audit.error_budget
    if whole is None or not whole.errors:
        return None
    classes = class_budgets(audit)
    shown = classes[:MAX_BARS]
    bars = [Bar("All classes", whole), *(Bar(entry.name, budget, entry.index) for entry, budget in shown)]
    parts = budget_legend((bar.budget for bar in bars), valid=audit.valid is not None)
    columns = [part for part, _ in parts]
    return {
        "chart": budget_chart(bars, audit.confidence_level),
        "patterns": pattern_definitions(),
        "legend": [(part, swatch(part), meaning) for part, meaning in parts],
        "columns": columns,
        "rows": [(bar.name, bar.index, _budget_cells(bar.budget, columns)) for bar in bars],
        "untried": untried_changes(whole),
        "more": len(classes) - len(shown),
        "added": any(segment.added for bar in bars for segment in segments(bar.budget)),
    }


def _budget_cells(budget: ErrorBudget, columns: list[str]) -> list[tuple[str, str, str]]:
    """For each column: errors with their percentage, its interval, and added errors."""
    found = {segment.part: segment for segment in segments(budget)}
    cells = [(format_count(budget.errors), "", "")]
    for part in columns:
        if part not in found:
            cells.append(("0" if part == "unexplained" else MISSING, "", ""))
            continue
        segment = found[part]
        interval = "" if segment.share is None else f"{format_percent_interval(segment.share.interval)} %"
        text = f"{segment.text} ({format_percent(segment.fraction)} %)"
        cells.append((text, interval, segment.new_errors))
    return cells


def _angle_sentence(features: FeatureSummary | None) -> str | None:
    if features is None or features.angle is None:
        return None
    pair = f" ({features.angle_pair[0]} and {features.angle_pair[1]})" if features.angle_pair else ""
    return f"The smallest angle between two class weights of the head, m_c, is {features.angle:.1f}°{pair}."


def _correlation_sentence(found: Correlation | None) -> str | None:
    if found is None:
        return None
    p_value = format_p_value(found.p_value)
    p_text = f"p {p_value}" if p_value.startswith("<") else f"p = {p_value}"
    return (
        f"Spearman's rank correlation between spread and accuracy: {format_number(found.rho)} over "
        f"{format_count(found.classes)} classes ({p_text})."
    )


def _feature_rows(features: FeatureSummary) -> list[tuple[str, str, str]]:
    """Metrics of the features and the head: name, value, interpretation."""
    weight = features.weight_norm_accuracy
    rows = {
        "Spread / norm of the class mean": (
            format_number(features.mean_spread_to_norm),
            "mean over classes; 0 if each class collapses to a point",
        ),
        "Within-class / between-class variance": (
            format_number(features.within_between),
            "0 if each class collapses to a point",
        ),
        "Agreement with the nearest class mean, %": (
            format_percent(features.centroid_agreement),
            "samples whose nearest class mean is the predicted class",
        ),
        "Variation of the distances of class means": (
            format_number(features.mean_norm_variation),
            "coefficient of variation of the distances to the global mean; 0 if all are equal",
        ),
        "Variation of the weight norms": (
            format_number(features.weight_norm_variation),
            "coefficient of variation; 0 if all norms are equal",
        ),
        "Weight norm and accuracy": (
            format_number(weight.rho if weight else None),
            "rank correlation over classes",
        ),
        "Mean cosine of class weights": (
            format_number(features.mean_cosine),
            "−1/(K−1) if they are evenly spread",
        ),
        "Standard deviation of the cosine": (
            format_number(features.std_cosine),
            "0 if they are evenly spread",
        ),
    }
    return [(name, value, meaning) for name, (value, meaning) in rows.items() if value != MISSING]
