"""What the HTML page of an audit is filled with."""

from __future__ import annotations

from typing import Any

from classgap.audit.audit import Audit
from classgap.audit.results import Correlation, FeatureSummary, Interval
from classgap.report import audit_charts
from classgap.report.class_table import audit_table
from classgap.report.details import audit_details
from classgap.report.formatting import (
    GAPS,
    GROUP_ORDER,
    MISSING,
    chance,
    count,
    failing_first,
    format_level,
    gap_name,
    measure,
    number,
    percent,
    percent_range,
    third_name,
)
from classgap.report.notes import audit_notes
from classgap.report.notices import notice_text
from classgap.report.summary import headline, sentences

FAILING = 100  # rows of the table of causes; the others' causes are shown when a class is opened


def audit_page(audit: Audit) -> dict[str, Any]:
    """Variables of ``audit.html``."""
    failing = failing_first(audit.classes)
    with_margins = [entry for entry in audit.classes if entry.logit_margin is not None]
    return {
        "audit": audit,
        "data_sets": [audit_details(audit)],
        "headline": headline(audit),
        "sentences": sentences(audit),
        "notices": [notice_text(notice) for notice in audit.notices],
        "notes": audit_notes(audit),
        "level": format_level(audit.confidence_level),
        "charts": {
            "classes": audit_charts.class_chart(audit),
            "groups": audit_charts.group_chart(audit),
            "margins": audit_charts.margin_chart(audit),
            "boxes": audit_charts.box_chart(audit),
            "spread": audit_charts.spread_chart(audit),
            "map": audit_charts.feature_map_chart(audit),
        },
        "thirds": {name: third_name(name, audit.rank_by) for name in GROUP_ORDER[:3] if name in audit.groups},
        "table": audit_table(audit),
        **_groups(audit),
        "gap_rows": gap_rows(audit),
        "failing": failing[:FAILING],
        "more_failing": max(0, len(failing) - FAILING),
        "index_of": {name: i for i, name in enumerate(audit.class_names)},
        "box_all": len(with_margins) <= audit_charts.BOXES,
        "angle": _angle(audit.features),
        "correlation": _correlation(audit.features.spread_accuracy) if audit.features is not None else None,
        "feature_rows": _feature_rows(audit.features) if audit.features is not None else [],
    }


def gap_rows(audit: Audit) -> list[tuple[str, str, str, str]]:
    """Every gap measure: name, value, interval, by chance."""
    rows = []
    for name in GAPS:
        value = getattr(audit.gap, name, None)
        if value is not None:
            unit = "" if name == "gini" else " %" if name.startswith("worst") else " points"
            interval = audit.gap.intervals.get(name)
            expected_by_chance = audit.gap.expected_by_chance.get(name)
            rows.append(
                (
                    gap_name(name, audit.rank_by),
                    measure(name, value) + unit,
                    _range(name, interval),
                    measure(name, expected_by_chance),
                )
            )
    return rows


def _groups(audit: Audit) -> dict[str, Any]:
    """Headers and rows of the table of groups, without columns in which nothing is known."""
    groups = audit_charts.ordered_groups(audit)
    columns = {
        "Group": [group.name for group in groups],
        "Classes": [count(len(group.members)) for group in groups],
        "Test samples": [count(group.support) for group in groups],
        "Accuracy, %": [percent(group.accuracy) for group in groups],
        f"{format_level(audit.confidence_level)} interval": [percent_range(group.interval) for group in groups],
        "Worst, %": [percent(group.min) for group in groups],
        "Best, %": [percent(group.max) for group in groups],
        "Margin": [number(group.margin) for group in groups],
        "Spread": [number(group.spread) for group in groups],
    }
    known = {header: cells for header, cells in columns.items() if any(cell != MISSING for cell in cells)}
    return {"group_headers": list(known), "group_rows": list(zip(*known.values(), strict=True))}


def _range(name: str, interval: Interval | None) -> str:
    return MISSING if interval is None else f"{measure(name, interval.low)} to {measure(name, interval.high)}"


def _angle(features: FeatureSummary | None) -> str | None:
    if features is None or features.angle is None:
        return None
    between = f", between {features.angle_pair[0]} and {features.angle_pair[1]}" if features.angle_pair else ""
    angle = f"{features.angle:.1f}°{between}"
    return f"Classifier-level margin m_c: the smallest angle between two rows of the head is {angle}."


def _correlation(found: Correlation | None) -> str | None:
    if found is None:
        return None
    over = f"over {count(found.classes)} classes (p: {chance(found.p_value)})"
    return f"Spearman's rank correlation of spread and accuracy is {number(found.rho)} {over}."


def _feature_rows(features: FeatureSummary) -> list[tuple[str, str, str]]:
    weight = features.weight_norm_accuracy
    figures = {
        "Spread / length of the mean": (
            number(features.mean_spread_to_norm),
            "mean over classes; 0: each class is one point",
        ),
        "Variance within / between classes": (number(features.within_between), "0: classes are points far apart"),
        "Nearest class mean agrees, %": (
            percent(features.centroid_agreement),
            "share of samples; 100: no head is needed",
        ),
        "Variation of the means' distances": (
            number(features.mean_norm_variation),
            "of the class means from their common mean; 0: all are equally far",
        ),
        "Variation of the weights' norms": (number(features.weight_norm_variation), "0: all rows are equally long"),
        "Weight norm against accuracy": (number(weight.rho if weight else None), "rank correlation over classes"),
        "Mean cosine of two rows of the head": (number(features.mean_cosine), "−1/(K−1): rows are spread evenly"),
        "Standard deviation of that cosine": (number(features.std_cosine), "0: rows are spread evenly"),
    }
    return [(name, value, meaning) for name, (value, meaning) in figures.items() if value != MISSING]
