"""Sentences about the samples, classes, correction and number of changed classes of a comparison or gate."""

from __future__ import annotations

from collections.abc import Sequence

from classgap.audit.diff import AuditDiff
from classgap.audit.gate_results import GateResult
from classgap.audit.stats.multiple_tests import FDR_CLASSES
from classgap.report.formatting import format_count, format_level, format_p_value, pluralize
from classgap.report.ordering import order_groups

NAMED = 5
CORRECTIONS = {
    "holm": "Holm (family-wise error rate)",
    "fdr_bh": "Benjamini-Hochberg (false discovery rate)",
}


def match_sentences(result: AuditDiff | GateResult) -> list[str]:
    """Say which samples and classes were left out, added, removed or renamed; empty if both sides are the same."""
    before, after = result.before_name, result.after_name
    found = []
    if not result.paired:
        test = "; each class is compared by Fisher's exact test" if isinstance(result, AuditDiff) else ""
        found.append(
            f"Samples are not paired: {format_count(result.n_samples)} of {before} and "
            f"{format_count(result.n_samples_after or 0)} of {after}{test}."
        )
    if result.only_before or result.only_after:
        found.append(
            f"Left out: {pluralize(result.only_before, 'sample', 'samples')} of {before} and "
            f"{format_count(result.only_after)} of {after}, which have no counterpart on the other side."
        )
    for title, names in (("Added", result.added), ("Removed", result.removed)):
        if names:
            found.append(f"{title}: {pluralize(len(names), 'class', 'classes')} ({name_some(names)}).")
    if result.renamed:
        found.append(f"Renamed: {name_some([f'{old} → {new}' for old, new in result.renamed.items()])}.")
    return found


def name_some(names: Sequence[str], limit: int = NAMED) -> str:
    """List the first names and the number of others.

    >>> name_some(["a", "b", "c"], limit=2)
    'a, b and 1 more'
    """
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {format_count(len(names) - limit)} more"


def correction_sentence(diff: AuditDiff) -> str:
    """Name the correction over classes."""
    return (
        f"Correction over classes: {CORRECTIONS.get(diff.correction, diff.correction)}; by default Holm up to "
        f"{FDR_CLASSES} classes, Benjamini-Hochberg above."
    )


def changed_sentence(diff: AuditDiff) -> str:
    """Say how many classes changed, including changes too small for a single test; empty if unknown.

    The estimate may find fewer classes than single tests: it counts p-values and ignores how small they are.
    """
    if diff.changed is None:
        return ""
    total = pluralize(sum(entry.status == "ok" for entry in diff.classes), "class", "classes")
    level = format_level(diff.confidence_level)
    shown = len(diff.gained) + len(diff.regressed)
    if diff.changed.at_least > shown:
        return (
            f"About {format_count(diff.changed.estimate)} of {total} changed, at least "
            f"{format_count(diff.changed.at_least)} with {level} confidence; single tests show {format_count(shown)}."
        )
    basis = f"(estimated number of changed classes, {level} confidence)"
    if not shown:
        return f"No evidence that any of {total} changed {basis}."
    return f"Single tests show that {format_count(shown)} of {total} changed; no evidence that others did {basis}."


def sign_rows(diff: AuditDiff) -> list[tuple[str, str, str, str, str]]:
    """Return one row per group: name, classes, classes up, classes down, p-value of the sign test."""
    return [
        (
            group.name,
            format_count(len(group.members)),
            format_count(group.gained),
            format_count(group.regressed),
            format_p_value(group.sign_p_value),
        )
        for group in order_groups(diff.groups)
    ]
