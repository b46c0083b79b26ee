"""Slices that carry the errors of hard classes below the mean."""

from __future__ import annotations

from classgap.audit.audit import Audit
from classgap.audit.slice_results import ClassSlice, SliceResult
from classgap.report.formatting import (
    format_count,
    format_level,
    format_p_value,
    format_percent,
    format_percent_interval,
    pluralize,
)
from classgap.report.sections import Section, SectionTable

LISTED = 20  # pairs of class and slice
NAMED = 5  # pairs in sentences


def slice_section(audit: Audit) -> Section | None:
    """Return the section on slices; ``None`` if none were given."""
    found = audit.slices
    if found is None:
        return None
    tables = (_pairs(found), *_columns(found, audit.confidence_level))
    return Section(
        key="slices",
        title="Slices",
        intro="Failing classes are those of the hard third below the balanced accuracy. “Elsewhere” is the rest of the "
        "class. P-values are adjusted by Holm's method for all tests: the probability of naming any slice by chance is "
        f"at most {format_percent(1 - audit.confidence_level)} %.",
        sentences=slice_sentences(audit),
        tables=tuple(table for table in tables if table.rows),
    )


def slice_sentences(audit: Audit) -> tuple[str, ...]:
    """Return the slices with significantly more errors, or that there is none; empty if no slices were given."""
    found = audit.slices
    if found is None:
        return ()
    significant = [entry for entry in found.classes if entry.significant]
    if found.n_pairs and not found.n_tests:
        pairs = pluralize(found.n_pairs, "pair", "pairs")
        return (
            f"No slice could be tested: in none of {pairs} of hard class and slice are there enough correct and "
            "wrong predictions for a significant difference.",
        )
    if not significant:
        classes = pluralize(found.n_classes, "hard class", "hard classes")
        return (f"No slice of a hard class has significantly more errors ({classes}, {_tests(found)}).",)
    sentences = [
        f"{entry.name}: {_rate(entry.errors, entry.support)} are errors for {entry.column} {entry.value}, "
        f"{_rate(entry.other_errors, entry.other_support)} in the rest of the class (adjusted p {_p(entry)})."
        for entry in significant[:NAMED]
    ]
    if len(significant) > NAMED:
        sentences.append(f"{len(significant) - NAMED:,} more slices have significantly more errors ({_tests(found)}).")
    return tuple(sentences)


def _tests(found: SliceResult) -> str:
    tests = pluralize(found.n_tests, "test", "tests")
    return f"{tests} of {pluralize(found.n_pairs, 'pair', 'pairs')} of class and slice"


def _p(entry: ClassSlice) -> str:
    text = format_p_value(entry.adjusted_p_value)
    return text if text.startswith("<") else f"= {text}"


def _rate(errors: int, support: int) -> str:
    return f"{format_count(errors)} of {format_count(support)} ({format_percent(errors / support)} %)"


def _pairs(found: SliceResult) -> SectionTable:
    rows = [
        (
            entry.name,
            entry.column,
            entry.value,
            _rate(entry.errors, entry.support),
            _rate(entry.other_errors, entry.other_support),
            format_p_value(entry.p_value),
            format_p_value(entry.adjusted_p_value),
            "yes" if entry.significant else "no",
        )
        for entry in found.classes[:LISTED]
    ]
    headers = ("class", "column", "slice", "errors in slice", "errors elsewhere", "p", "adjusted p", "significant")
    caption = f"Slices of hard classes, smallest p-value first ({_tests(found)})"
    return SectionTable(caption, headers, tuple(rows), text_columns=(1, 2), classes=True, optional=("p", "significant"))


def _columns(found: SliceResult, confidence_level: float) -> list[SectionTable]:
    headers = ("slice", "support", "accuracy, %", f"{format_level(confidence_level)} CI", "expected, %")
    tables = []
    for name, groups in found.columns.items():
        worst = sorted(groups, key=lambda group: group.accuracy - group.expected_accuracy)
        rows = tuple(
            (
                group.value,
                format_count(group.support),
                format_percent(group.accuracy),
                format_percent_interval(group.interval),
                format_percent(group.expected_accuracy),
            )
            for group in worst[:LISTED]
        )
        caption = f"All classes by {name}, with the accuracy expected from the classes in the slice"
        tables.append(SectionTable(caption, headers, rows))
    return tables
