"""Details of each class for the HTML page, as JSON in a script element: columns of short texts, which stay small."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from classgap.audit.audit import Audit
from classgap.audit.diff import AuditDiff
from classgap.audit.diff_results import CLASS_CHANGES
from classgap.audit.figures import FIGURES, SECTIONS, ClassResult, Figure
from classgap.report.causes import cause_evidence
from classgap.report.class_table import format_cell
from classgap.report.display_names import cause_name, method_names, third_name
from classgap.report.formatting import (
    MISSING,
    format_count,
    format_level,
    format_percent,
)
from classgap.report.ordering import GROUP_ORDER

UNSEEN = "no test samples"
UNITS = {"fraction": ", %", "points": ", points"}


def audit_details(audit: Audit) -> dict[str, Any]:
    """Metrics, confusions, logit margins and diagnosis of each class."""
    names = {name: i for i, name in enumerate(audit.class_names)}
    return {
        "names": list(audit.class_names),
        "kinds": [entry.group or "unseen" for entry in audit.classes],
        "kind_names": {name: third_name(name, audit.rank_by) for name in GROUP_ORDER[:3]} | {"unseen": UNSEEN},
        "facts": _sections(FIGURES, audit.classes, audit.confidence_level),
        "confusions": [
            [[names[c.name], format_count(c.count), format_percent(c.rate)] for c in entry.confusions]
            for entry in audit.classes
        ],
        "margins": [_quantiles(entry) for entry in audit.classes],
        "causes": {
            str(entry.index): [
                [cause_name(c.name), cause_evidence(c), method_names(c.methods)] for c in entry.diagnosis
            ]
            for entry in audit.classes
            if entry.diagnosis
        },
    }


def diff_details(diff: AuditDiff) -> dict[str, Any]:
    """Metrics of each class on both sides."""
    return {
        "names": [entry.name for entry in diff.classes],
        "kinds": [entry.verdict if entry.status == "ok" else "unseen" for entry in diff.classes],
        "kind_names": {"unseen": UNSEEN},
        "facts": _sections(CLASS_CHANGES, diff.classes, diff.confidence_level),
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


def _sections(figures: Sequence[Figure], classes: Sequence[Any], confidence_level: float) -> list[Any]:
    """[[section, [[label, [text of class 0, …]], …]], …] without rows in which nothing is known."""
    found: dict[str, list[Any]] = {section: [] for section in SECTIONS}
    for figure in figures:
        if not figure.label:
            continue
        label = figure.label.replace("{level}", format_level(confidence_level)) + UNITS.get(figure.unit, "")
        cells = ["" if (text := format_cell(figure, entry)) == MISSING else text for entry in classes]
        if any(cells):
            found[figure.section].append([label, cells])
    return [[section, rows] for section, rows in found.items() if rows]


def _quantiles(entry: ClassResult) -> list[float]:
    if entry.logit_margin is None:
        return []
    return [float(f"{value:.3g}") for value in entry.logit_margin.quantiles]
