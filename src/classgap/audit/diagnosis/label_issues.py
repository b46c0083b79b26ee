"""Test labels that confident learning doubts, by cleanlab, which is optional."""

from __future__ import annotations

import importlib.util
import warnings

import numpy as np
from torch import Tensor

from classgap.audit._types import Integers

MOST_SCORES = 20_000_000  # beyond it, cleanlab's copies in double precision would take most of an audit's memory


def label_issues(logits_NK: Tensor | None, targets_N: Integers, wanted: bool | None) -> tuple[Integers | None, str]:
    """How many samples of each class have a doubtful label, (K,), and a remark if that was not found out.

    The predictions must be out of sample, as those for a test set are: a model that has learnt a wrong label by heart
    does not doubt it.

    Args:
        logits_NK: scores, if there are any.
        targets_N: the labels in question.
        wanted: ``None`` to do it where it is possible and quick; ``True`` to insist; ``False`` to leave it.
    """
    if wanted is False:
        return None, "Labels were not checked: check_labels is off."
    reason = _reason_not_to(logits_NK, targets_N, wanted)
    if reason or logits_NK is None:
        if wanted:
            raise ValueError(f"check_labels: {reason}")
        return None, f"Labels were not checked: {reason}"
    from cleanlab.filter import find_label_issues

    probabilities_NK = logits_NK.double().softmax(dim=1).numpy()
    with warnings.catch_warnings():  # one a class that is too small to doubt, which its support says already
        warnings.simplefilter("ignore", UserWarning)
        doubtful_N = find_label_issues(targets_N, probabilities_NK, filter_by="both", n_jobs=1)
    return np.bincount(targets_N[doubtful_N], minlength=logits_NK.shape[1]), ""


def _reason_not_to(logits_NK: Tensor | None, targets_N: Integers, wanted: bool | None) -> str:
    if logits_NK is None:
        return "confident learning needs logits or probabilities, and only predicted labels are here."
    if logits_NK.shape[1] < 2:
        return "there is only one class."
    if (targets_N == targets_N[0]).all():
        return "all test samples are of one class, and confident learning needs two to compare."
    if importlib.util.find_spec("cleanlab") is None:
        return "confident learning is done by cleanlab, which is not installed (pip install 'classgap[labels]')."
    if wanted is None and logits_NK.numel() > MOST_SCORES:
        return f"there are {logits_NK.numel():,} scores; set check_labels to have it done all the same."
    return ""
