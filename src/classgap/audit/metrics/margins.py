"""How a figure of single samples is distributed within each class."""

from __future__ import annotations

import numpy as np

from classgap.audit._types import Floats
from classgap.audit.metrics.class_order import ClassOrder
from classgap.audit.results import QUANTILE_LEVELS, Distribution


def class_distributions(values_N: Floats, order: ClassOrder) -> list[Distribution | None]:
    """Mean, standard deviation and quantiles of each class's samples; ``None`` for unseen classes.

    Quantiles are interpolated linearly between samples.

    >>> order = ClassOrder.from_labels(np.array([0, 0, 2]), num_classes=3)
    >>> [entry and entry.median for entry in class_distributions(np.array([1.0, 2.0, 5.0]), order)]
    [1.5, None, 5.0]
    """
    found: list[Distribution | None] = [None] * len(order.support_K)
    for k, rows in order.rows():
        values = values_N[rows]
        quantiles = np.quantile(values, QUANTILE_LEVELS)
        found[k] = Distribution(float(values.mean()), float(values.std()), tuple(quantiles.tolist()))
    return found
