"""What the page shows when a class is opened, as a data island: columns of short texts, which keep small."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from markupsafe import Markup

from classgap.audit.audit import Audit
from classgap.audit.diff import AuditDiff
from classgap.audit.results import ClassResult
from classgap.report.display_names import cause_name, method_names, third_name
from classgap.report.formatting import (
    MISSING,
    format_count,
    format_level,
    format_number,
    format_p_value,
    format_percent,
    format_percent_interval,
    format_points,
    format_points_interval,
)
from classgap.report.ordering import GROUP_ORDER

UNSEEN = "no test samples"

Fact = tuple[str, Callable[[Any], str]]


def audit_details(audit: Audit) -> dict[str, Any]:
    """Facts, confusions, logit margins and diagnosis of each class."""
    names = {name: i for i, name in enumerate(audit.class_names)}
    return {
        "names": list(audit.class_names),
        "kinds": [entry.group or "unseen" for entry in audit.classes],
        "kind_names": {name: third_name(name, audit.rank_by) for name in GROUP_ORDER[:3]} | {"unseen": UNSEEN},
        "facts": _sections(audit.classes, _audit_facts(audit)),
        "confusions": [
            [[names[c.name], format_count(c.count), format_percent(c.rate)] for c in entry.confusions]
            for entry in audit.classes
        ],
        "margins": [_quantiles(entry) for entry in audit.classes],
        "causes": {
            str(entry.index): [[cause_name(c.name), c.evidence, method_names(c.methods)] for c in entry.diagnosis]
            for entry in audit.classes
            if entry.diagnosis
        },
    }


def diff_details(diff: AuditDiff) -> dict[str, Any]:
    """Facts of each class."""
    return {
        "names": [entry.name for entry in diff.classes],
        "kinds": [entry.verdict if entry.status == "ok" else "unseen" for entry in diff.classes],
        "kind_names": {"unseen": UNSEEN},
        "facts": _sections(diff.classes, _diff_facts(diff)),
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


def _audit_facts(audit: Audit) -> dict[str, list[Fact]]:
    return {
        "On the test set": [
            ("Accuracy (recall), %", lambda e: format_percent(e.accuracy)),
            (f"{format_level(audit.confidence_level)} interval, %", lambda e: format_percent_interval(e.interval)),
            ("Precision, %", lambda e: format_percent(e.precision)),
            ("Test samples", lambda e: format_count(e.support)),
            ("Predicted as this class", lambda e: format_count(e.predicted)),
            ("Calibration error, %", lambda e: format_percent(e.calibration_error)),
            ("Labels in doubt", lambda e: format_count(e.label_issues)),
            ("Groups", lambda e: ", ".join(e.groups) or MISSING),
        ],
        "In training": [
            ("Training samples", lambda e: format_count(e.train_count)),
            ("Training accuracy, %", lambda e: format_percent(e.train_accuracy)),
        ],
        "Margins": [
            ("Mean output margin m_o", lambda e: format_number(e.margin)),
            ("Mean logit margin", lambda e: format_number(e.logit_margin.mean if e.logit_margin else None)),
            ("Smallest distance to a boundary", lambda e: format_number(e.class_margin)),
            ("Class mean to nearest boundary", lambda e: format_number(e.centroid_margin)),
        ],
        "Features and head": [
            ("Spread ‖ŝ‖", lambda e: format_number(e.spread)),
            ("Length of the mean ‖μ̂‖", lambda e: format_number(e.mean_norm)),
            ("Spread / length", lambda e: format_number(e.spread_to_norm)),
            ("Margin γ that MR² would assign", lambda e: format_number(e.gamma)),
            ("Weight norm ‖w‖", lambda e: format_number(e.weight_norm)),
            ("Largest distance of two samples", lambda e: format_number(e.dispersion)),
            ("Mean distance to the farthest sample", lambda e: format_number(e.max_intra_distance)),
            ("Class with the nearest mean", lambda e: e.nearest_class or MISSING),
            ("Distance to it", lambda e: format_number(e.nearest_distance)),
        ],
    }


def _diff_facts(diff: AuditDiff) -> dict[str, list[Fact]]:
    return {
        "Accuracy": [
            ("Before, %", lambda e: format_percent(e.before)),
            ("After, %", lambda e: format_percent(e.after)),
            ("Change, points", lambda e: format_points(e.change)),
            (
                f"{format_level(diff.confidence_level)} interval of the change",
                lambda e: format_points_interval(e.interval),
            ),
            ("Test samples", lambda e: format_count(e.support)),
            ("Third before", lambda e: e.group or MISSING),
        ],
        "Is the change real?": [
            ("Samples fixed", lambda e: format_count(e.fixed)),
            ("Samples broken", lambda e: format_count(e.broken)),
            ("p-value", lambda e: format_p_value(e.p_value)),
            ("p-value after Holm's correction", lambda e: format_p_value(e.p_adjusted)),
            ("Verdict", lambda e: e.verdict),
        ],
    }


def _sections(classes: Sequence[Any], sections: dict[str, list[Fact]]) -> list[Any]:
    """[[section, [[label, [text of class 0, …]], …]], …] without what is known of no class."""
    found = []
    for title, facts in sections.items():
        rows = [[label, ["" if (t := text(e)) == MISSING else t for e in classes]] for label, text in facts]
        known = [row for row in rows if any(row[1])]
        if known:
            found.append([title, known])
    return found


def _quantiles(entry: ClassResult) -> list[float]:
    if entry.logit_margin is None:
        return []
    return [float(f"{value:.3g}") for value in entry.logit_margin.quantiles]
