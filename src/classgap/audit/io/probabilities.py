"""Distinguish probabilities from logits, and convert them to logits."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from classgap.audit._types import Floats, Integers
from classgap.audit.io.rows import CACHED_ENTRIES, Matrix, row_chunks, single_or_double

SUM_TOLERANCE = 1e-2  # of a row sum; half precision over a thousand classes needs it
ROUNDING_ERROR = 0.005  # of a probability written with two decimals
MAX_ROUNDING_ERROR = 0.5  # of a row sum; with hundreds of classes, rounding could otherwise explain any sum
_EXACT = 1e-9


def sum_to_one(sums_N: Floats, num_classes: int, *, two_decimals: bool) -> bool:
    """Return whether rows of scores in [0, 1] with these sums are probabilities.

    Args:
        sums_N: sum of each row.
        num_classes: number of entries per row.
        two_decimals: whether all scores have at most two decimals; their rounding errors add up.

    >>> sum_to_one(np.array([1.0, 1.01]), 2, two_decimals=True), sum_to_one(np.array([1.1]), 2, two_decimals=False)
    (True, False)
    """
    tolerance = SUM_TOLERANCE
    if two_decimals:
        tolerance = max(tolerance, min(num_classes * ROUNDING_ERROR, MAX_ROUNDING_ERROR))
    return bool(np.abs(sums_N - 1).max(initial=0.0) <= tolerance + _EXACT)


def are_probabilities(scores_NK: Matrix) -> bool:
    """Return whether scores are probabilities: in [0, 1], with rows that sum to 1.

    With one class, logits and probabilities look alike; the scores are read as logits.

    >>> are_probabilities(torch.tensor([[0.67, 0.34]])), are_probabilities(torch.tensor([[0.5, 0.9]]))
    (True, False)
    """
    samples, classes = scores_NK.shape
    if classes < 2 or not samples:
        return False
    sums_N, two_decimals = np.empty(samples), True
    for rows in row_chunks(samples, classes, CACHED_ENTRIES):
        values_BK = single_or_double(scores_NK[rows])
        lowest, highest = values_BK.aminmax()
        if lowest < 0 or highest > 1:
            return False
        sums_N[rows] = values_BK.sum(dim=1).numpy()
        if two_decimals:
            two_decimals = bool(((values_BK - values_BK.round(decimals=2)).abs() < 1e-6).all())
    return sum_to_one(sums_N, classes, two_decimals=two_decimals)


def normalize(probabilities_BK: Tensor) -> Tensor:
    """Return probabilities whose rows sum to 1, in at least single precision.

    >>> normalize(torch.tensor([[0.67, 0.34]])).sum().item()
    1.0
    """
    values_BK = single_or_double(probabilities_BK)
    return values_BK / values_BK.sum(dim=1)[:, None]


def check_probabilities(probabilities_NK: Matrix) -> None:
    """Check that no entry is negative and every row sums to 1.

    Raises:
        ValueError: if one is, or one does not.
    """
    samples, classes = probabilities_NK.shape
    for rows in row_chunks(samples, classes, CACHED_ENTRIES):
        values_BK = single_or_double(probabilities_NK[rows])
        off = (values_BK.sum(dim=1) - 1).abs().max()
        if bool(values_BK.min() < 0) or bool(off > SUM_TOLERANCE):
            raise ValueError(
                "probabilities must not be negative and every row must sum to 1: pass raw scores as logits."
            )


def log_probabilities(probabilities_BK: Tensor) -> Tensor:
    """Return ln p, whose softmax is p, so that probabilities can be treated as logits; ln 0 is finite."""
    values_BK = single_or_double(probabilities_BK)
    return values_BK.clamp(min=torch.finfo(values_BK.dtype).tiny).log_()


def count_zero_margins(probabilities_NK: Matrix, targets_N: Integers) -> int:
    """Count samples whose logit margin ln P(true) - ln P(best other) has the logarithm of 0 in it."""
    samples, classes = probabilities_NK.shape
    if classes < 2:
        return 0
    zeros = 0
    for rows in row_chunks(samples, classes, CACHED_ENTRIES):
        p_BK = probabilities_NK[rows]
        own_B = p_BK.gather(1, torch.from_numpy(targets_N[rows])[:, None])[:, 0]
        others_B = (p_BK != 0).sum(dim=1) - (own_B != 0).long()
        zeros += int(((own_B == 0) | (others_B == 0)).sum())
    return zeros
