"""Mistakes within a superclass apart from mistakes outside it."""

from __future__ import annotations

from classgap.audit.audit import Audit
from classgap.audit.superclass_results import SuperclassResult
from classgap.report.formatting import (
    MISSING,
    format_count,
    format_level,
    format_number,
    format_percent,
    format_percent_interval,
    pluralize,
)
from classgap.report.sections import Section, SectionTable

LISTED = 20
PARENT = "under the same parent"  # not only its children: in uneven hierarchies, also their descendants


def superclass_section(audit: Audit) -> Section | None:
    """Return the section on superclasses; ``None`` if none were given."""
    found = audit.superclasses
    if found is None:
        return None
    tables = (_groups(found, audit.confidence_level), _classes(audit, found), _levels(found))
    return Section(
        key="superclasses",
        title="Superclasses",
        intro="A mistake is within its superclass if the predicted class has the same superclass as the label. The "
        "accuracy of a superclass counts such mistakes as correct.",
        sentences=_sentences(audit, found),
        tables=tuple(table for table in tables if table.rows),
    )


def _sentences(audit: Audit, found: SuperclassResult) -> tuple[str, ...]:
    level = format_level(audit.confidence_level)
    accuracy = (
        f"Accuracy of superclasses {format_percent(found.accuracy)} % ({level} CI "
        f"{format_percent_interval(found.accuracy_interval)})."
    )
    if found.within_fraction is None:
        return (accuracy,)
    within = (
        f"{format_count(found.within)} of {pluralize(found.errors, 'error', 'errors')} "
        f"({format_percent(found.within_fraction)} %, {level} CI {format_percent_interval(found.interval)}) stay "
        f"within the superclass; {format_percent(found.expected_by_chance)} % would if errors were spread evenly."
    )
    if found.mean_level is None:
        return within, accuracy
    climb = f"On average, an error is {format_number(found.mean_level)} levels away in the hierarchy; 1 is {PARENT}."
    return within, accuracy, climb


def _groups(found: SuperclassResult, confidence_level: float) -> SectionTable:
    worst = sorted(found.groups, key=lambda group: group.within - group.errors)
    rows = tuple(
        (
            group.name,
            format_count(group.classes),
            format_percent(group.accuracy),
            format_percent_interval(group.interval),
            format_count(group.within),
            format_count(group.errors - group.within),
        )
        for group in worst[:LISTED]
    )
    level = f"{format_level(confidence_level)} CI"
    headers = ("superclass", "classes", "accuracy, %", level, "errors within", "errors outside")
    return SectionTable("Superclasses with the most errors outside", headers, rows)


def _classes(audit: Audit, found: SuperclassResult) -> SectionTable:
    labeled = {entry.name: entry for entry in audit.classes}
    worst = sorted(found.classes, key=lambda entry: -entry.outside)
    rows = tuple(
        (
            entry.name,
            entry.superclass or MISSING,
            format_percent(labeled[entry.name].accuracy),
            format_percent(entry.accuracy),
            format_count(entry.within),
            format_count(entry.outside),
        )
        for entry in worst[:LISTED]
        if entry.outside
    )
    headers = ("class", "superclass", "accuracy, %", "of its superclass, %", "errors within", "errors outside")
    caption = "Classes with the most errors outside their superclass"
    return SectionTable(caption, headers, rows, text_columns=(1,), classes=True)


def _levels(found: SuperclassResult) -> SectionTable:
    rows = tuple(
        (f"{level} ({PARENT})" if level == 1 else str(level), format_count(count),
         format_percent(count / found.errors))
        for level, count in (found.levels or {}).items()
    )  # fmt: skip
    return SectionTable("Errors by level of the hierarchy", ("level", "errors", "of all errors, %"), rows)
