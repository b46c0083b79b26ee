"""Test labels that confident learning doubts, by cleanlab, which is optional."""

from __future__ import annotations

import importlib.util
import warnings

import numpy as np
from torch import Tensor

from classgap.audit._types import Integers
from classgap.audit.results import Notice

MOST_SCORES = 20_000_000  # beyond it, cleanlab's copies in double precision would take most of an audit's memory


# Reasons not to check labels, for error messages and reports.
REASONS = {
    "disabled": "check_labels is False.",
    "no-scores": "confident learning needs logits or probabilities, got predicted labels only.",
    "one-class": "there is only one class.",
    "one-target": "all test samples are of one class; confident learning needs at least two.",
    "no-cleanlab": "cleanlab is not installed (pip install 'classgap[labels]').",
    "too-many-scores": f"there are more than {MOST_SCORES:,} scores; set check_labels=True to check them anyway.",
}


def label_issues(
    logits_NK: Tensor | None, targets_N: Integers, wanted: bool | None
) -> tuple[Integers | None, Notice | None]:
    """Count the samples of each class with a doubtful label, (K,); return a notice if labels are not checked.

    Predictions must be out of sample, as on a test set: a model that memorized a wrong label does not doubt it.

    Args:
        logits_NK: scores, if known.
        targets_N: labels to check.
        wanted: ``None`` to check labels where possible and fast, ``True`` to require it, ``False`` to skip it.

    Raises:
        ValueError: if ``wanted`` is ``True`` and labels cannot be checked.
    """
    reason = "disabled" if wanted is False else _reason_not_to(logits_NK, targets_N, wanted)
    if reason is not None or logits_NK is None:
        reason = reason or "no-scores"
        if wanted:
            raise ValueError(f"check_labels: {REASONS[reason]}")
        return None, Notice("labels-not-checked", {"reason": reason})
    from cleanlab.filter import find_label_issues

    probabilities_NK = logits_NK.double().softmax(dim=1).numpy()
    with warnings.catch_warnings():  # one per class that is too small, which its support shows already
        warnings.simplefilter("ignore", UserWarning)
        doubtful_N = find_label_issues(targets_N, probabilities_NK, filter_by="both", n_jobs=1)
    return np.bincount(targets_N[doubtful_N], minlength=logits_NK.shape[1]), None


def _reason_not_to(logits_NK: Tensor | None, targets_N: Integers, wanted: bool | None) -> str | None:
    if logits_NK is None:
        return "no-scores"
    if logits_NK.shape[1] < 2:
        return "one-class"
    if (targets_N == targets_N[0]).all():
        return "one-target"
    if importlib.util.find_spec("cleanlab") is None:
        return "no-cleanlab"
    if wanted is None and logits_NK.numel() > MOST_SCORES:
        return "too-many-scores"
    return None
