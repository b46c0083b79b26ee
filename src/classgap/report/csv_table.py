"""The classes of an audit as CSV, one line a class, for spreadsheets and scripts."""

from __future__ import annotations

import csv
import io
import os

from classgap.audit.audit import Audit
from classgap.whole_file import write_whole

# Fields of a class that are single values, under their own names.
PLAIN = (
    *("index", "name", "status", "group", "support", "accuracy"),
    *("precision", "recall", "predicted", "calibration_error", "train_count", "train_accuracy", "margin"),
    *("mean_norm", "spread", "ratio", "gamma", "weight_norm", "dispersion", "farthest", "class_margin"),
    *("centroid_margin", "nearest_class", "nearest_distance", "label_issues"),
)
DERIVED = (
    *("interval_low", "interval_high", "logit_margin_mean", "logit_margin_median"),
    *("top_confusion", "top_confusion_rate", "cause"),
)


def write_csv(audit: Audit, path: str | os.PathLike[str]) -> None:
    """Write one line a class; shares are fractions, what is not known is empty.

    Args:
        audit: what to write.
        path: the file, which is replaced whole or not at all.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, [*PLAIN, *DERIVED], lineterminator="\n")
    writer.writeheader()
    for entry in audit.classes:
        low, high = entry.interval if entry.interval is not None else (None, None)
        top, margin = entry.top_confusion, entry.logit_margin
        writer.writerow(
            {name: getattr(entry, name) for name in PLAIN}
            | {
                "interval_low": low,
                "interval_high": high,
                "logit_margin_mean": None if margin is None else margin.mean,
                "logit_margin_median": None if margin is None else margin.median,
                "top_confusion": None if top is None else top.name,
                "top_confusion_rate": None if top is None else top.rate,
                "cause": entry.diagnosis[0].name if entry.diagnosis else None,
            }
        )
    write_whole(path, text.getvalue())
