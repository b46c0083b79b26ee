"""Test samples by number: the position in the test set where it is known, else the row."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from classgap.audit._types import SampleId
from classgap.audit.audit import Audit
from classgap.audit.io.sample_ids import sample_number


def predicted_classes(audit: Audit, samples: Iterable[SampleId]) -> dict[SampleId, int]:
    """Return the predicted class of each of these samples.

    >>> audit = Audit.from_predictions(predictions=[1, 0], targets=[1, 1], index=[10, 20])
    >>> predicted_classes(audit, [20])
    {20: 0}
    """
    wanted = list(samples)
    numbers = np.array([sample_number(sample) for sample in wanted], dtype=np.int64)
    rows = numbers if audit.samples.index is None else np.searchsorted(audit.samples.index, numbers)
    return dict(zip(wanted, audit.samples.predictions[rows].tolist(), strict=True))


def misclassified(audit: Audit, label: int, limit: int) -> tuple[int, ...]:
    """Return the numbers of the first ``limit`` misclassified samples of a class.

    >>> audit = Audit.from_predictions(predictions=[1, 0, 0], targets=[1, 1, 1], index=[10, 20, 30])
    >>> misclassified(audit, 1, limit=1)
    (20,)
    """
    samples = audit.samples
    rows = np.flatnonzero((samples.targets == label) & ~samples.correct)[:limit]
    return tuple((rows if samples.index is None else samples.index[rows]).tolist())
