"""Metrics as labeled next to metrics as valid, and the classes whose labels are the problem."""

from __future__ import annotations

from classgap.audit.audit import Audit
from classgap.audit.valid_results import ValidClass, ValidResult
from classgap.report.display_names import gap_name, third_name
from classgap.report.formatting import (
    MISSING,
    format_count,
    format_gap,
    format_level,
    format_percent,
    format_percent_interval,
    format_points_interval,
    pluralize,
)
from classgap.report.ordering import THIRDS, order_groups
from classgap.report.sections import Section, SectionTable

LISTED = 20  # classes in each table
MEASURES = ("worst_class", "worst_tenth", "best_worst", "std", "gini")


def valid_section(audit: Audit) -> Section | None:
    """Return the section on valid labels; ``None`` if none were given."""
    valid = audit.valid
    if valid is None:
        return None
    tables = (_figures(audit, valid), _invalid_labels(audit, valid), _valid_errors(audit, valid))
    sentences = (_accuracy(audit, valid), gap_sentence(audit), _validity(audit, valid), _errors(audit, valid))
    return Section(
        key="valid",
        title="Valid labels",
        intro="As labeled: a prediction is correct if it equals the label. As valid (valid-label accuracy): it is "
        "correct if it is one of the sample's valid labels. Groups contain the same classes in both columns.",
        sentences=tuple(sentence for sentence in sentences if sentence),
        tables=tuple(table for table in tables if table.rows),
    )


def gap_sentence(audit: Audit) -> str:
    """Return how much of the gap is labels, or an empty string without a gap."""
    valid = audit.valid
    if valid is None or valid.gap.easy_hard is None or audit.gap.easy_hard is None or valid.gap_change is None:
        return ""
    which = "the easy and the hard third" if audit.rank_by == "own" else "classes easy and hard for the baseline"
    level = format_level(audit.confidence_level)
    text = (
        f"With valid labels, the gap between {which} changes from {format_percent(audit.gap.easy_hard)} to "
        f"{format_percent(valid.gap.easy_hard)} points ({level} CI of the change "
        f"{format_points_interval(valid.gap_change_interval)})"
    )
    if valid.reranked_easy_hard is None or audit.rank_by != "own":
        return f"{text}."
    apart = format_percent(valid.reranked_easy_hard)
    text = f"{text}; thirds re-formed from valid-label accuracy are {apart} points apart"
    low, high = sorted((audit.gap.easy_hard - valid.reranked_easy_hard, audit.gap.easy_hard - valid.gap.easy_hard))
    if low <= 0:
        return f"{text}: labels do not explain the gap."
    least, most = format_percent(low), format_percent(high)
    amount = most if least == most else f"{least} to {most}"
    return f"{text}. Labels account for {amount} points of the gap."


def _accuracy(audit: Audit, valid: ValidResult) -> str:
    overall = valid.overall
    left_out = ""
    if overall.left_out:
        samples = pluralize(overall.left_out, "sample", "samples")
        left_out = f" {samples} without a valid label {'is' if overall.left_out == 1 else 'are'} left out."
    return (
        f"Valid-label accuracy {format_percent(overall.accuracy)} % ({format_level(audit.confidence_level)} CI "
        f"{format_percent_interval(overall.interval)}), accuracy {format_percent(audit.overall.accuracy)} %."
        f"{left_out}"
    )


def _validity(audit: Audit, valid: ValidResult) -> str:
    text = f"The label itself is valid for {format_percent(valid.overall.label_validity)} % of the samples"
    parts = [
        f"{format_percent(valid.groups[name].label_validity)} % in the {third_name(name)}"
        if audit.rank_by == "own"
        else f"{format_percent(valid.groups[name].label_validity)} % of classes {third_name(name, audit.rank_by)}"
        for name in ("hard", "easy")
        if name in valid.groups
    ]
    return f"{text}: {', '.join(parts)}." if parts else f"{text}."


def _errors(audit: Audit, valid: ValidResult) -> str:
    errors = sum(not correct for correct in audit.samples.correct.tolist())
    count = valid.overall.valid_errors
    return f"{format_count(count)} of {pluralize(errors, 'error', 'errors')} predict a valid label." if count else ""


def _figures(audit: Audit, valid: ValidResult) -> SectionTable:
    labeled, overall = audit.overall, valid.overall
    rows = [
        (
            "accuracy, %",
            format_percent(labeled.accuracy),
            format_percent(overall.accuracy),
            format_percent_interval(overall.interval),
            format_percent(overall.label_validity),
        ),
        (
            "balanced accuracy, %",
            format_percent(labeled.balanced_accuracy),
            format_percent(overall.balanced_accuracy),
            format_percent_interval(overall.balanced_interval),
            MISSING,
        ),
    ]
    for k in sorted(key for key in overall.top_k if key > 1):
        top = format_percent(labeled.top_k.get(k)), format_percent(overall.top_k[k])
        rows.append((f"top-{k} accuracy, %", *top, MISSING, MISSING))
    if overall.calibration_error is not None:
        errors = format_percent(labeled.calibration_error), format_percent(overall.calibration_error)
        rows.append(("calibration error, %", *errors, MISSING, MISSING))
    for group in order_groups(audit.groups):
        found = valid.groups[group.name]
        name = third_name(group.name, audit.rank_by) if group.name in THIRDS else group.name
        rows.append(
            (
                f"{name}, %",
                format_percent(group.accuracy),
                format_percent(found.accuracy),
                format_percent_interval(found.interval),
                format_percent(found.label_validity),
            )
        )
    if audit.gap.easy_hard is not None:
        own = MISSING if audit.rank_by != "own" else format_percent(audit.gap.easy_hard)
        rows.append((f"{gap_name('easy_hard', audit.rank_by)}, points", format_percent(audit.gap.easy_hard),
                     format_percent(valid.gap.easy_hard),
                     format_percent_interval(valid.gap.intervals.get("easy_hard")), MISSING))  # fmt: skip
        apart = format_percent(valid.reranked_easy_hard), format_percent_interval(valid.reranked_interval)
        rows.append(("thirds re-formed from valid-label accuracy, points", own, *apart, MISSING))
    for name in MEASURES:
        unit = "" if name == "gini" else ", %" if name.startswith("worst") else ", points"
        interval = valid.gap.intervals.get(name)
        ends = MISSING if interval is None else f"{format_gap(name, interval.low)} to {format_gap(name, interval.high)}"
        as_labeled, as_valid = (format_gap(name, getattr(part, name)) for part in (audit.gap, valid.gap))
        rows.append((f"{gap_name(name)}{unit}", as_labeled, as_valid, ends, MISSING))
    headers = ("figure", "as labeled", "as valid", f"{format_level(audit.confidence_level)} CI", "label valid, %")
    return SectionTable("As labeled and as valid", headers, tuple(rows), optional=headers[3:])


def _invalid_labels(audit: Audit, valid: ValidResult) -> SectionTable:
    known = [entry for entry in valid.classes if entry.label_validity is not None and entry.label_validity < 1]
    worst = sorted(known, key=lambda entry: (entry.label_validity or 0.0, -entry.support))
    return _classes("Classes with the lowest fraction of valid labels", worst, audit)


def _valid_errors(audit: Audit, valid: ValidResult) -> SectionTable:
    worst = sorted(valid.classes, key=lambda entry: -entry.valid_errors)
    return _classes("Classes with the most errors that are valid", [e for e in worst if e.valid_errors], audit)


def _classes(caption: str, entries: list[ValidClass], audit: Audit) -> SectionTable:
    labeled = {entry.name: entry for entry in audit.classes}
    rows = []
    for entry in entries[:LISTED]:
        own = labeled[entry.name]
        errors = own.support - round((own.accuracy or 0.0) * own.support)
        rows.append(
            (
                entry.name,
                format_percent(entry.label_validity),
                format_percent_interval(entry.label_validity_interval),
                format_percent(own.accuracy),
                format_percent(entry.accuracy),
                f"{format_count(entry.valid_errors)} of {format_count(errors)}",
                format_count(entry.left_out),
            )
        )
    headers = (
        "class",
        "label valid, %",
        f"{format_level(audit.confidence_level)} CI",
        "as labeled, %",
        "as valid, %",
        "valid errors",
        "left out",
    )
    return SectionTable(caption, headers, tuple(rows), classes=True, optional=(headers[2], headers[6]))
