"""What arrays and columns are often called elsewhere, for those that look for them here."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

_TRUE = (
    *("target", "targets", "label", "labels", "true", "true_label", "true_labels", "truth", "ground_truth", "gt"),
    *("y", "y_true", "actual", "class"),
)
_PREDICTED = (
    *("prediction", "predictions", "pred", "preds", "predicted", "predicted_label", "predicted_labels"),
    *("y_pred", "y_hat"),
)
ELSEWHERE = {
    "target": _TRUE,
    "targets": _TRUE,
    "prediction": _PREDICTED,
    "predictions": _PREDICTED,
    "probabilities": ("probs", "prob", "proba", "probas", "probability", "softmax", "y_prob", "y_proba"),
}
ALIKE = 0.8  # a slip of the hand, such as "tragets"; at 0.6, as difflib has it, a carpet is a target


def renaming(wanted: Sequence[str], there: Sequence[str]) -> str:
    """Which of the names that are there is to be renamed to one that is wanted; "" if none seems to be meant.

    >>> renaming(["targets"], ["images", "labels"])
    'rename labels to targets'
    >>> renaming(["targets"], ["carpet"])
    ''
    """
    for name in wanted:
        for other in there:
            if other.lower() in ELSEWHERE.get(name, ()) or difflib.get_close_matches(other.lower(), [name], 1, ALIKE):
                return f"rename {other} to {name}"
    return ""
