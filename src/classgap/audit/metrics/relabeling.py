"""Labels that number the classes differently from the predictions: counted from 1, or in another order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from classgap.audit._types import Integers
from classgap.audit.metrics.accuracy import ClassCounts
from classgap.audit.metrics.confusions import count_confusions
from classgap.audit.results import Notice

LEAST_COUNT = 5  # samples of a class that are predicted as the same other class
SHIFTED_RATE = 0.25  # accuracy with renamed classes; a model that guesses reaches less
PERMUTED_RATE = 0.5  # the same, without the evidence of one offset
FACTOR = 3  # at least so many times the accuracy
SAME_OFFSET = 0.9  # of the renamed classes, if labels are shifted


def numbering_notice(
    targets_N: Integers, predictions_N: Integers, counts: ClassCounts, names: Sequence[str]
) -> tuple[Notice, ...]:
    """Return a notice if most classes are predicted as one other class each, as after shifting or permuting labels.

    A weak model does not do this: it predicts its favorite classes for several classes, or spreads its errors.

    >>> targets = np.repeat(np.arange(1, 5), 10)
    >>> counts = ClassCounts.from_labels(targets, targets - 1, 5)
    >>> numbering_notice(targets, targets - 1, counts, list("abcde"))[0].code
    'labels-shifted'
    """
    true_C, predicted_C, count_C = count_confusions(targets_N, predictions_N, len(names))
    order = np.lexsort((predicted_C, -count_C, true_C))
    classes, first = np.unique(true_C[order], return_index=True)
    top = order[first]  # most frequent confusion of each class
    kept = (count_C[top] >= LEAST_COUNT) & (count_C[top] > counts.correct_K[classes])
    classes, others, count = classes[kept], predicted_C[top][kept], count_C[top][kept]
    _, place = np.unique(others, return_index=True)  # one class for each predicted class
    seen, total = int(counts.seen_K.sum()), len(targets_N)
    renamed = int(count[place].sum())
    if 2 * len(place) <= seen or renamed < FACTOR * counts.correct_K.sum():
        return ()
    found = {
        "classes": len(place),
        "seen": seen,
        "accuracy": counts.accuracy,
        "renamed_accuracy": renamed / total,
    }
    offset_U = (others - classes)[place]
    for offset in (-1, 1):
        if len(place) > 1 and (offset_U == offset).mean() >= SAME_OFFSET and renamed >= SHIFTED_RATE * total:
            return (Notice("labels-shifted", {**found, "offset": offset}),)
    if renamed < PERMUTED_RATE * total:
        return ()
    example = {"label": names[int(classes[place[0]])], "prediction": names[int(others[place[0]])]}
    return (Notice("labels-permuted", {**found, **example}),)
