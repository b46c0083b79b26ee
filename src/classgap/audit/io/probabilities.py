"""Distinguish probabilities from logits, and convert them to logits."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from classgap.audit._types import Floats, Integers

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


def normalized_if_probabilities(scores_NK: Tensor) -> Tensor | None:
    """Return the scores with rows that sum to 1 if they are probabilities, else ``None``.

    With one class, logits and probabilities look alike; the scores are read as logits.

    >>> normalized_if_probabilities(torch.tensor([[0.67, 0.34]])).sum().item()
    1.0
    >>> normalized_if_probabilities(torch.tensor([[2.0, -1.0]])) is None
    True
    """
    if scores_NK.shape[1] < 2 or not scores_NK.numel():
        return None
    lowest, highest = scores_NK.aminmax()
    if lowest < 0 or highest > 1:
        return None
    values_NK = scores_NK.to(torch.promote_types(scores_NK.dtype, torch.float32))
    sums_N = values_NK.sum(dim=1)
    two_decimals = bool(((values_NK - values_NK.round(decimals=2)).abs() < 1e-6).all())
    if not sum_to_one(sums_N.double().numpy(), scores_NK.shape[1], two_decimals=two_decimals):
        return None
    return values_NK / sums_N[:, None]


def as_log_probabilities(probabilities_NK: Tensor) -> Tensor:
    """Return ln p, whose softmax is p, so that probabilities can be treated as logits.

    Raises:
        ValueError: if an entry is negative or a row does not sum to 1.
    """
    if not probabilities_NK.numel():
        return probabilities_NK
    values = probabilities_NK.to(torch.promote_types(probabilities_NK.dtype, torch.float32))
    off = (values.sum(dim=1) - 1).abs().max()
    if bool(values.min() < 0) or bool(off > SUM_TOLERANCE):
        raise ValueError("probabilities must not be negative and every row must sum to 1: pass raw scores as logits.")
    return values.clamp(min=torch.finfo(values.dtype).tiny).log_()


def count_zero_margins(probabilities_NK: Tensor, targets_N: Integers) -> int:
    """Count samples whose logit margin ln P(true) - ln P(best other) has the logarithm of 0 in it."""
    if probabilities_NK.shape[1] < 2:
        return 0
    own_N1 = torch.from_numpy(targets_N)[:, None]
    own_N = probabilities_NK.gather(1, own_N1)[:, 0]
    others_N = (probabilities_NK != 0).sum(dim=1) - (own_N != 0).long()
    return int(((own_N == 0) | (others_N == 0)).sum())
