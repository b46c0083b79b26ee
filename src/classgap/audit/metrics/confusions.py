"""Confusions between classes, without a K×K confusion matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from classgap.audit._types import Integers
from classgap.audit.results import Confusion, ConfusionPair
from classgap.audit.stats.intervals import wilson_bounds

MAX_CELLS = 4_000_000  # of a confusion matrix that is counted whole


def count_confusions(
    targets_N: Integers, predictions_N: Integers, num_classes: int
) -> tuple[Integers, Integers, Integers]:
    """Return the true class, predicted class and count of each confusion that occurs, sorted by both classes.

    >>> [part.tolist() for part in count_confusions(np.array([0, 0, 1]), np.array([1, 1, 1]), 2)]
    [[0], [1], [2]]
    """
    wrong = targets_N != predictions_N
    code_E = targets_N[wrong] * num_classes + predictions_N[wrong]
    if num_classes**2 <= MAX_CELLS:  # without sorting
        count_C = np.bincount(code_E, minlength=num_classes**2)
        code = np.flatnonzero(count_C)
        count = count_C[code]
    else:
        code, count = np.unique(code_E, return_counts=True)
    return code // num_classes, code % num_classes, count


def top_confusions(
    targets_N: Integers, predictions_N: Integers, names: Sequence[str], support_K: Integers, top: int
) -> list[tuple[Confusion, ...]]:
    """Return the most frequent confusions of each class; ties are broken by class index.

    >>> top_confusions(np.array([0, 0, 1]), np.array([1, 1, 1]), ["cat", "dog"], np.array([2, 1]), top=3)[0]
    (Confusion(name='dog', count=2, rate=1.0),)
    """
    true, predicted, count = count_confusions(targets_N, predictions_N, len(names))
    order = np.lexsort((predicted, -count, true))
    true, predicted, count = true[order], predicted[order], count[order]
    ends_K = np.cumsum(np.bincount(true, minlength=len(names)))
    found = []
    for k, end in enumerate(ends_K.tolist()):
        start = int(ends_K[k - 1]) if k else 0
        rows = range(start, min(start + top, end))
        found.append(tuple(Confusion(names[predicted[i]], int(count[i]), float(count[i] / support_K[k])) for i in rows))
    return found


def confusion_pairs(
    targets_N: Integers,
    predictions_N: Integers,
    names: Sequence[str],
    support_K: Integers,
    top: int,
    confidence_level: float,
) -> tuple[ConfusionPair, ...]:
    """Return the pairs of classes that are confused most, in either direction.

    Pairs are ranked by the lower Wilson bound of (confusions in both directions) / (samples of both classes), so that a
    rate from few samples ranks below the same rate from many. Ties are broken by class index.

    >>> confusion_pairs(np.array([0, 0, 1]), np.array([1, 0, 1]), ["cat", "dog"], np.array([2, 1]), 5, 0.95)
    (ConfusionPair(first='cat', second='dog', first_as_second=1, second_as_first=0, first_rate=0.5, second_rate=0.0, \
rate=0.333...),)
    """
    classes = len(names)
    true, predicted, count = count_confusions(targets_N, predictions_N, classes)
    low, high = np.minimum(true, predicted), np.maximum(true, predicted)
    code, inverse = np.unique(low * classes + high, return_inverse=True)
    upward = np.bincount(inverse, weights=count * (true < predicted), minlength=len(code)).astype(np.int64)
    downward = np.bincount(inverse, weights=count * (true > predicted), minlength=len(code)).astype(np.int64)
    low, high = code // classes, code % classes
    together = support_K[low] + support_K[high]
    bound, _ = wilson_bounds(upward + downward, together, confidence_level)
    best = np.argsort(-bound, kind="stable")[:top]
    rate_up = upward / np.maximum(support_K[low], 1)
    rate_down = downward / np.maximum(support_K[high], 1)
    pairs = []
    for i in best.tolist():
        a = (int(low[i]), int(upward[i]), float(rate_up[i]))
        b = (int(high[i]), int(downward[i]), float(rate_down[i]))
        (first, as_second, first_rate), (second, as_first, second_rate) = (a, b) if a[2] >= b[2] else (b, a)
        pairs.append(
            ConfusionPair(
                first=names[first],
                second=names[second],
                first_as_second=as_second,
                second_as_first=as_first,
                first_rate=first_rate if support_K[first] else None,
                second_rate=second_rate if support_K[second] else None,
                rate=float((as_second + as_first) / together[i]),
            )
        )
    return tuple(pairs)
