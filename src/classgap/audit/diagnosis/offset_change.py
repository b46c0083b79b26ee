"""Change of accuracy that class offsets would make, by thirds that other samples rank."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from classgap.audit._types import Floats, Integers
from classgap.audit.diagnosis.counterfactuals import Counterfactuals
from classgap.audit.io.predictions import Predictions
from classgap.audit.metrics.groups import thirds
from classgap.audit.results import Interval, OffsetChange


def offset_change(data: Predictions, found: Counterfactuals, confidence_level: float) -> OffsetChange | None:
    """Measure the cross-fitted offsets; ``None`` without scores, or if no fold has easy and hard classes.

    In each fold, the thirds are ranked by the accuracies in the other folds. Ranked by the same samples, classes that
    look hard by bad luck would seem to gain.
    """
    folds_N = found.folds_N
    if found.decision_N is None or folds_N is None:
        return None
    right_N = data.predictions_N == data.targets_N
    change_N = (found.decision_N == data.targets_N).astype(np.float64) - right_N
    easy, hard = [], []
    for fold in np.unique(folds_N):
        held_N = folds_N == fold
        ranked = _rank(right_N[~held_N], data.targets_N[~held_N], data.num_classes)
        easy_N, hard_N = (_mean_weights(held_N, data.targets_N, ranked[name]) for name in ("easy", "hard"))
        if easy_N is not None and hard_N is not None:
            easy.append(easy_N)
            hard.append(hard_N)
    if not hard:
        return None
    easy_N, hard_N = np.mean(easy, axis=0), np.mean(hard, axis=0)
    gain = float(hard_N @ change_N)
    half = NormalDist().inv_cdf((1 + confidence_level) / 2) * _standard_error(hard_N, change_N, data.targets_N)
    return OffsetChange(
        overall=float(change_N.mean()),
        easy=float(easy_N @ change_N),
        hard=gain,
        hard_interval=Interval(max(-1.0, gain - half), min(1.0, gain + half)),
    )


def _rank(right_N: object, labels_N: Integers, num_classes: int) -> dict[str, Integers]:
    support_K = np.bincount(labels_N, minlength=num_classes)
    correct_K = np.bincount(labels_N, weights=np.asarray(right_N, dtype=np.float64), minlength=num_classes)
    return thirds(correct_K / np.maximum(support_K, 1), support_K > 0)


def _mean_weights(held_N: object, labels_N: Integers, classes: Integers) -> Floats | None:
    """Weights of the held samples in the mean accuracy of some classes; ``None`` without samples."""
    inside_N = np.asarray(held_N) & np.isin(labels_N, classes)
    if not inside_N.any():
        return None
    support_K = np.bincount(labels_N[inside_N], minlength=int(labels_N.max()) + 1)
    return np.where(inside_N, 1 / (np.maximum(support_K, 1)[labels_N] * (support_K > 0).sum()), 0.0)


def _standard_error(weight_N: Floats, change_N: Floats, labels_N: Integers) -> float:
    """Standard error within classes; one pseudo-sample at the mean gives a class of one sample a variance too."""
    mean_K = (np.bincount(labels_N, weights=change_N) + change_N.mean()) / (np.bincount(labels_N) + 1)
    return float(np.sqrt((weight_N**2 * np.square(change_N - mean_K[labels_N])).sum()))
