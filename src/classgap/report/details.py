"""What the page shows when a class is opened, as a data island: columns of short texts, which keep small."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from markupsafe import Markup

from classgap.audit.audit import Audit
from classgap.audit.diff import AuditDiff
from classgap.audit.results import ClassResult
from classgap.report.formatting import (
    GROUP_ORDER,
    MISSING,
    cause_name,
    chance,
    count,
    format_level,
    method_names,
    number,
    percent,
    percent_range,
    points,
    points_range,
    third_name,
)

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
            [[names[c.name], count(c.count), percent(c.rate)] for c in entry.confusions] for entry in audit.classes
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
            ("Accuracy (recall), %", lambda e: percent(e.accuracy)),
            (f"{format_level(audit.confidence_level)} interval, %", lambda e: percent_range(e.interval)),
            ("Precision, %", lambda e: percent(e.precision)),
            ("Test samples", lambda e: count(e.support)),
            ("Predicted as this class", lambda e: count(e.predicted)),
            ("Calibration error, %", lambda e: percent(e.calibration_error)),
            ("Labels in doubt", lambda e: count(e.label_issues)),
            ("Groups", lambda e: ", ".join(e.groups) or MISSING),
        ],
        "In training": [
            ("Training samples", lambda e: count(e.train_count)),
            ("Training accuracy, %", lambda e: percent(e.train_accuracy)),
        ],
        "Margins": [
            ("Mean output margin m_o", lambda e: number(e.margin)),
            ("Mean logit margin", lambda e: number(e.logit_margin.mean if e.logit_margin else None)),
            ("Smallest distance to a boundary", lambda e: number(e.class_margin)),
            ("Class mean to nearest boundary", lambda e: number(e.centroid_margin)),
        ],
        "Features and head": [
            ("Spread ‖ŝ‖", lambda e: number(e.spread)),
            ("Length of the mean ‖μ̂‖", lambda e: number(e.mean_norm)),
            ("Spread / length", lambda e: number(e.spread_to_norm)),
            ("Margin γ that MR² would assign", lambda e: number(e.gamma)),
            ("Weight norm ‖w‖", lambda e: number(e.weight_norm)),
            ("Largest distance of two samples", lambda e: number(e.dispersion)),
            ("Mean distance to the farthest sample", lambda e: number(e.max_intra_distance)),
            ("Class with the nearest mean", lambda e: e.nearest_class or MISSING),
            ("Distance to it", lambda e: number(e.nearest_distance)),
        ],
    }


def _diff_facts(diff: AuditDiff) -> dict[str, list[Fact]]:
    return {
        "Accuracy": [
            ("Before, %", lambda e: percent(e.before)),
            ("After, %", lambda e: percent(e.after)),
            ("Change, points", lambda e: points(e.change)),
            (f"{format_level(diff.confidence_level)} interval of the change", lambda e: points_range(e.interval)),
            ("Test samples", lambda e: count(e.support)),
            ("Third before", lambda e: e.group or MISSING),
        ],
        "Is the change real?": [
            ("Samples fixed", lambda e: count(e.fixed)),
            ("Samples broken", lambda e: count(e.broken)),
            ("p-value", lambda e: chance(e.p_value)),
            ("p-value after Holm's correction", lambda e: chance(e.p_adjusted)),
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
