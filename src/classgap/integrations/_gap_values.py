"""Scalars of ``ClassGap`` from sums over samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from classgap.audit.metrics.accuracy import ClassCounts
from classgap.audit.metrics.gaps import tenth_size
from classgap.audit.metrics.groups import THIRDS, thirds


def class_values(confusion_KK: NDArray[Any], margin_sum_K: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return the accuracy and the mean output margin of each class; NaN without samples.

    Args:
        confusion_KK: number of samples by true and predicted class.
        margin_sum_K: sum of the output margins of each class.
    """
    counts = _counts(confusion_KK)
    margin_K = np.where(counts.seen_K, margin_sum_K / np.maximum(counts.support_K, 1), np.nan)
    return {"accuracy": counts.accuracy_K, "margin": margin_K}


def gap_values(
    confusion_KK: NDArray[Any], margin_sum_K: NDArray[Any], *, ranking_K: Any = None, worst_k: int | None = None
) -> dict[str, float]:
    """Return the scalars that ``ClassGap`` lists; NaN where one does not exist.

    Args:
        confusion_KK: number of samples by true and predicted class.
        margin_sum_K: sum of the output margins of each class.
        ranking_K: numbers that rank the classes, hardest first; by default their accuracies.
        worst_k: number of classes of ``worst_k_accuracy``; by default a tenth.

    >>> values = gap_values(np.diag([4, 2]) + np.array([[0, 0], [2, 0]]), np.array([2.0, 1.0]))
    >>> values["easy_accuracy"], values["hard_accuracy"], values["margin"]
    (1.0, 0.5, 0.375)
    """
    counts, samples = _counts(confusion_KK), confusion_KK.sum()
    accuracy_K, margin_K = class_values(confusion_KK, margin_sum_K).values()
    parts = thirds(accuracy_K if ranking_K is None else ranking_K, counts.seen_K)
    ordered_U = np.sort(accuracy_K[counts.seen_K])
    accuracy = {third: _mean(accuracy_K[parts[third]]) for third in THIRDS}
    return {
        "accuracy": counts.accuracy if samples else np.nan,
        "balanced_accuracy": _mean(ordered_U),
        **{f"{third}_accuracy": value for third, value in accuracy.items()},
        "easy_hard_gap": accuracy["easy"] - accuracy["hard"],
        "worst_class_accuracy": _mean(ordered_U[:1]),
        "worst_k_accuracy": _mean(ordered_U[: worst_k or tenth_size(len(ordered_U))]),
        "margin": float(margin_sum_K.sum() / samples) if samples else np.nan,
        **{f"{third}_margin": _mean(margin_K[parts[third]]) for third in THIRDS},
    }


def _counts(confusion_KK: NDArray[Any]) -> ClassCounts:
    return ClassCounts(confusion_KK.sum(axis=1), confusion_KK.diagonal(), confusion_KK.sum(axis=0))


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean()) if len(values) else float("nan")
