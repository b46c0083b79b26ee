"""Details of each class for the HTML page, as JSON in a script element: columns of short texts, which stay small."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from classgap.audit._types import SampleId
from classgap.audit.audit import Audit
from classgap.audit.class_tables import ClassTables, class_tables
from classgap.audit.diff import AuditDiff
from classgap.audit.diff_results import CLASS_CHANGES
from classgap.audit.figures import SECTIONS, ClassResult
from classgap.audit.results import AuditSource, BudgetShare, Cause, ErrorBudget
from classgap.report.advice import MAX_SAMPLES, advice_parts
from classgap.report.budget import CHANGES
from classgap.report.causes import cause_evidence
from classgap.report.class_table import format_cell
from classgap.report.display_names import cause_name, method_names, third_name
from classgap.report.formatting import (
    MISSING,
    format_count,
    format_level,
    format_percent,
    printable,
)
from classgap.report.ordering import GROUP_ORDER

UNSEEN = "no test samples"
MAX_NUMBERS = 3000  # about this many sample numbers per list, over all classes
MIN_SAMPLES = 3
UNITS = {"fraction": ", %", "points": ", points"}


def audit_details(audit: Audit) -> dict[str, Any]:
    """Metrics, confusions, logit margins, diagnosis, error budget and sample numbers of each class."""
    names = {name: i for i, name in enumerate(audit.class_names)}
    texts: dict[str, int] = {}  # of the causes, which repeat many of them: text → position
    return {
        "names": list(audit.class_names),
        "kinds": [entry.group or "unseen" for entry in audit.classes],
        "kind_names": {name: third_name(name, audit.rank_by) for name in GROUP_ORDER[:3]} | {"unseen": UNSEEN},
        "facts": _sections(class_tables(audit), audit.confidence_level),
        "confusions": [
            [[names[c.name], format_count(c.count), format_percent(c.rate)] for c in entry.confusions]
            for entry in audit.classes
        ],
        "margins": [_quantiles(entry) for entry in audit.classes],
        "causes": {
            str(entry.index): [
                [texts.setdefault(text, len(texts)) for text in _cause_texts(cause, entry, audit.source)]
                for cause in entry.diagnosis
            ]
            for entry in audit.classes
            if entry.diagnosis
        },
        "texts": list(texts),
        "level": format_level(audit.confidence_level),
        "budgets": {str(e.index): _budget(e.error_budget) for e in audit.classes if e.error_budget is not None},
        "doubted": _sample_numbers({e.index: e.doubted_samples for e in audit.classes}),
        "confident": _sample_numbers({e.index: e.confident_errors for e in audit.classes}),
    }


def diff_details(diff: AuditDiff) -> dict[str, Any]:
    """Metrics of each class on both sides."""
    return {
        "names": [entry.name for entry in diff.classes],
        "kinds": [entry.verdict if entry.status == "ok" else "unseen" for entry in diff.classes],
        "kind_names": {"unseen": UNSEEN},
        "facts": _sections([(CLASS_CHANGES, diff.classes)], diff.confidence_level),
    }


def island(data: Any) -> Markup:
    """JSON that is safe inside a script element: nothing in it can end the element or start a comment.

    >>> island(["</script><!--"])
    Markup('["\\\\u003c/script\\\\u003e\\\\u003c!--"]')
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return Markup(text)


def _sections(tables: ClassTables, confidence_level: float) -> list[Any]:
    """[[section, [[label, [text of class 0, …]], …]], …] without rows in which nothing is known."""
    found: dict[str, list[Any]] = {section: [] for section in SECTIONS}
    for figure, classes in ((figure, records) for figures, records in tables for figure in figures):
        if not figure.label:
            continue
        label = figure.label.replace("{level}", format_level(confidence_level)) + UNITS.get(figure.unit, "")
        cells = ["" if (text := format_cell(figure, entry)) == MISSING else text for entry in classes]
        if any(cells):
            found[figure.section].append([label, cells])
    return [[section, rows] for section, rows in found.items() if rows]


def _cause_texts(cause: Cause, entry: ClassResult, source: AuditSource | None) -> tuple[str, ...]:
    """Name, evidence, methods, advice and command."""
    parts, evidence = advice_parts(cause, entry, source), cause_evidence(cause)
    return cause_name(cause.name), evidence[0].upper() + evidence[1:], method_names(cause.methods), *parts


def _budget(budget: ErrorBudget) -> list[Any]:
    """[errors, unexplained, lower bound, one list of numbers per change]; 0 for a change that was not tried."""
    shares = [getattr(budget, change) for change in CHANGES]
    return [budget.errors, budget.unexplained, int(budget.lower_bound), *(share and _share(share) for share in shares)]


def _share(share: BudgetShare) -> list[float]:
    """Removed errors, interval of their fraction in percent, added errors and those in other classes."""
    low, high = (round(100 * bound) for bound in share.interval)
    return [share.removed, low, high, share.added, share.added_elsewhere]


def _sample_numbers(samples: Mapping[int, Sequence[SampleId]]) -> dict[str, list[Any]]:
    """Class → [number of samples, ids of the first]; fewer per class if many classes have some."""
    found = {str(index): ids for index, ids in samples.items() if ids}
    limit = max(MIN_SAMPLES, min(MAX_SAMPLES, MAX_NUMBERS // max(len(found), 1)))
    return {
        index: [len(ids), [printable(each) if isinstance(each, str) else each for each in ids[:limit]]]
        for index, ids in found.items()
    }


def _quantiles(entry: ClassResult) -> list[float]:
    if entry.logit_margin is None:
        return []
    return [float(f"{value:.3g}") for value in entry.logit_margin.quantiles]
