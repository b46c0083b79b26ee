"""Template variables of the comparison page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from classgap.audit.diff import AuditDiff
from classgap.audit.diff_results import Change, GroupChange
from classgap.report.charts import diff_charts
from classgap.report.class_table import diff_table
from classgap.report.details import diff_details
from classgap.report.diff_summary import diff_summary
from classgap.report.formatting import (
    MISSING,
    format_count,
    format_level,
    format_p_value,
    format_percent,
    format_points,
    format_points_interval,
)
from classgap.report.gap_rows import gap_change_row, run_rows
from classgap.report.match_text import changed_sentence, correction_sentence, match_sentences
from classgap.report.notes import diff_notes
from classgap.report.ordering import order_groups
from classgap.report.summary import comparison_name, diff_headline


def diff_page(diffs: Sequence[AuditDiff]) -> dict[str, Any]:
    """Return the variables of ``diff.html``."""
    keys = [""] if len(diffs) == 1 else [f"c{i}-" for i in range(len(diffs))]
    return {
        "views": [diff_view(diff, key) for diff, key in zip(diffs, keys, strict=True)],
        "data_sets": [diff_details(diff) for diff in diffs],
        "overview": _overview(diffs),
        "notes": diff_notes(diffs[0]),
    }


def diff_view(diff: AuditDiff, key: str) -> dict[str, Any]:
    """Return the variables of one comparison, for ``diff_sections.html``."""
    groups = [_group_row(group.name, group) for group in order_groups(diff.groups)]
    own = [_group_row(f"{group.name}, each model's own", group, counts=False) for group in diff.own_groups.values()]
    return {
        "diff": diff,
        "key": key,
        "name": comparison_name(diff),
        "level": format_level(diff.confidence_level),
        "headline": diff_headline(diff),
        "summary": diff_summary(diff),
        "match": match_sentences(diff),
        "changed": changed_sentence(diff),
        "correction": correction_sentence(diff),
        "key_changes": key_changes(diff),
        "slopes": diff_charts.class_slopes(diff, key),
        "changes": diff_charts.class_changes(diff, key),
        "groups": diff_charts.group_changes(diff, key),
        "group_rows": groups + own,
        "gap_rows": [gap_change_row(name, change) for name, change in diff.gap.items()],
        "run_rows": run_rows(diff),
        "table": diff_table(diff),
        "index_of": {entry.name: entry.index for entry in diff.classes},
    }


def key_changes(diff: AuditDiff) -> list[tuple[str, Change, str]]:
    """The changes at the top of the page: label, change, CSS class."""
    found = [("Accuracy", diff.overall, ""), ("Balanced accuracy", diff.balanced, "")]
    found += [
        (f"{name.title()} third", diff.groups[name].change, name) for name in ("easy", "hard") if name in diff.groups
    ]
    if "worst_class" in diff.gap:
        found.append(("Worst class", diff.gap["worst_class"], ""))
    return found


def _group_row(label: str, group: GroupChange, *, counts: bool = True) -> tuple[str, ...]:
    """A row of the table of groups; no ``counts`` if the group has different classes on each side."""
    change = group.change
    values = (
        format_percent(change.before),
        format_percent(change.after),
        format_points(change.change),
        format_points_interval(change.interval),
        format_points(change.expected_by_chance),
    )
    classes = (format_count(group.gained), format_count(group.regressed), format_p_value(group.sign_p_value))
    return (label, *values, *(classes if counts else [MISSING] * 3))


def _overview(diffs: Sequence[AuditDiff]) -> dict[str, Any]:
    """Headers and rows of the table of all comparisons."""
    headers = ["Compared with", "Gained", "Regressed", *(label for label, _, _ in key_changes(diffs[0]))]
    rows = []
    for diff in diffs:
        counts = (format_count(len(diff.gained)), format_count(len(diff.regressed)))
        changes = [(format_points(c.change), format_points_interval(c.interval)) for _, c, _ in key_changes(diff)]
        rows.append({"name": diff.after_name, "counts": counts, "changes": changes})
    return {"headers": headers, "rows": rows}
