"""The classes of an audit or of comparisons as CSV, one line a class, for spreadsheets and scripts."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from typing import Any

from classgap._atomic_write import atomic_write_text
from classgap.audit.audit import Audit
from classgap.audit.diff import AuditDiff
from classgap.audit.results import Interval

# Fields of a class that are single values, under their own names.
PLAIN = (
    *("index", "name", "status", "group", "support", "accuracy"),
    *("precision", "recall", "predicted", "calibration_error", "train_count", "train_accuracy", "margin"),
    *(
        "mean_norm",
        "spread",
        "spread_to_norm",
        "gamma",
        "weight_norm",
        "dispersion",
        "max_intra_distance",
        "class_margin",
    ),
    *("centroid_margin", "nearest_class", "nearest_distance", "label_issues"),
)
DERIVED = (
    *("interval_low", "interval_high", "logit_margin_mean", "logit_margin_median"),
    *("top_confusion", "top_confusion_rate", "cause"),
)
CHANGES = (
    *("index", "name", "status", "group", "support", "before", "after", "change"),
    *("fixed", "broken", "p_value", "p_adjusted", "verdict"),
)
SIDES = ("before_name", "after_name")
ENDS = ("interval_low", "interval_high")


def write_csv(audit: Audit, path: str | os.PathLike[str]) -> None:
    """Write one line a class; shares are fractions, what is not known is empty.

    Args:
        audit: what to write.
        path: the file, which is replaced whole or not at all.
    """
    lines = []
    for entry in audit.classes:
        top, margin = entry.top_confusion, entry.logit_margin
        lines.append(
            {name: getattr(entry, name) for name in PLAIN}
            | _ends(entry.interval)
            | {
                "logit_margin_mean": None if margin is None else margin.mean,
                "logit_margin_median": None if margin is None else margin.median,
                "top_confusion": None if top is None else top.name,
                "top_confusion_rate": None if top is None else top.rate,
                "cause": entry.diagnosis[0].name if entry.diagnosis else None,
            }
        )
    _write((*PLAIN, *DERIVED), lines, path)


def write_diff_csv(diffs: Sequence[AuditDiff], path: str | os.PathLike[str]) -> None:
    """Write one line a class of each comparison; shares are fractions, what is not known is empty.

    Args:
        diffs: what to write, below each other.
        path: the file, which is replaced whole or not at all.
    """
    lines = [
        {name: getattr(diff, name) for name in SIDES}
        | {name: getattr(entry, name) for name in CHANGES}
        | _ends(entry.interval)
        for diff in diffs
        for entry in diff.classes
    ]
    _write((*CHANGES[:8], *ENDS, *CHANGES[8:], *SIDES), lines, path)


def _ends(interval: Interval | None) -> dict[str, Any]:
    return dict(zip(ENDS, interval or (None, None), strict=True))


def _write(columns: Sequence[str], lines: Sequence[dict[str, Any]], path: str | os.PathLike[str]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    atomic_write_text(path, text.getvalue())
