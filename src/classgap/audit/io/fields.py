"""Names of the arrays and columns in prediction files, and the names other tools use for them."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

KINDS = ("logits", "probabilities", "predictions")  # a file holds exactly one
FIELDS = (
    *("targets", *KINDS, "features", "index"),
    *("train_counts", "train_predictions", "train_targets", "train_features"),
)
SAMPLE_COLUMNS = {"filename": "filenames", "text": "texts"}  # columns of CSV files, and arrays; for thumbnails
NAMES = (
    *(*FIELDS, "head_weight", "head_bias", "class_names", "valid_labels", "valid_labels_offsets"),
    *SAMPLE_COLUMNS.values(),
)
PREDICTED = ("top_k", "top_k_scores")  # written by classgap predict for people; an audit skips them
LOGIT_COLUMN = "logit:"  # prefix of the columns of logits in a CSV file of classgap predict

_TARGETS = (
    *("target", "targets", "label", "labels", "true", "true_label", "true_labels", "truth", "ground_truth", "gt"),
    *("y", "y_true", "actual", "class"),
)
_PREDICTIONS = (
    *("prediction", "predictions", "pred", "preds", "predicted", "predicted_label", "predicted_labels"),
    *("y_pred", "y_hat"),
)
SYNONYMS = {
    "target": _TARGETS,
    "targets": _TARGETS,
    "prediction": _PREDICTIONS,
    "predictions": _PREDICTIONS,
    "probabilities": ("probs", "prob", "proba", "probas", "probability", "softmax", "y_prob", "y_proba"),
}
SIMILARITY = 0.8  # catches typos such as "tragets"; at difflib's default of 0.6, "carpet" would match "target"


def suggest_rename(expected: Sequence[str], found: Sequence[str]) -> str:
    """Suggest which of the names found to rename to an expected one; "" if none resembles it.

    >>> suggest_rename(["targets"], ["images", "labels"])
    'rename labels to targets'
    >>> suggest_rename(["targets"], ["carpet"])
    ''
    """
    for name in expected:
        for other in found:
            typo = difflib.get_close_matches(other.lower(), [name], n=1, cutoff=SIMILARITY)
            if typo or other.lower() in SYNONYMS.get(name, ()):
                return f"rename {other} to {name}"
    return ""
