"""Distinguish probabilities from logits, and convert them to logits."""

from __future__ import annotations

import torch
from torch import Tensor

from classgap.audit._types import Integers
from classgap.audit.io.rows import CACHED_ENTRIES, Matrix, row_chunks, single_or_double

SUM_TOLERANCE = 1e-2  # of a row sum; half precision over a thousand classes needs it
MAX_ROUNDING_ERROR = 0.5  # of a row sum; with hundreds of classes, rounding could otherwise explain any sum
DECIMALS = (4, 3, 2)  # of rounded probabilities; the fewest that a row has count
_EXACT = 1e-6


def probability_rows(scores_BK: Tensor, num_classes: int | None = None) -> Tensor:
    """Return which rows are probabilities: not negative, and with a sum of 1.

    Sums may be off by :data:`SUM_TOLERANCE`. Where all scores of a row have few decimals, sums may be off by half a
    unit of the last decimal per class, because rounding errors add up. Rows may have leading
    dimensions. The function uses tensor operations only, so that it can be compiled and exported;
    exporters that trace want ``num_classes`` as a constant.

    >>> probability_rows(torch.tensor([[0.67, 0.34], [0.5, 0.9], [-1.0, 2.0]]))
    tensor([ True, False, False])
    """
    values_BK = single_or_double(scores_BK)
    classes = values_BK.shape[-1] if num_classes is None else num_classes
    off_B = (values_BK.sum(dim=-1) - 1).abs()
    tolerance_B = torch.full_like(off_B, SUM_TOLERANCE)
    for decimals in DECIMALS:
        rounding_error = min(classes * 0.5 * 10**-decimals, MAX_ROUNDING_ERROR)
        if rounding_error > SUM_TOLERANCE:
            scaled_BK = values_BK * 10**decimals
            rounded_B = (scaled_BK - scaled_BK.round()).abs().amax(dim=-1) < _EXACT * 10**decimals
            tolerance_B = torch.where(rounded_B, rounding_error, tolerance_B)
    return (values_BK.amin(dim=-1) >= 0) & (off_B <= tolerance_B + _EXACT)


def are_probabilities(scores_NK: Matrix) -> bool:
    """Return whether all rows are probabilities; see :func:`probability_rows`.

    With one class, logits and probabilities look alike; the scores are read as logits.

    >>> are_probabilities(torch.tensor([[0.67, 0.34]])), are_probabilities(torch.tensor([[0.5, 0.9]]))
    (True, False)
    """
    samples, classes = scores_NK.shape
    return min(samples, classes - 1) > 0 and all(
        _first_other_row(scores_NK[rows]) is None for rows in row_chunks(samples, classes, CACHED_ENTRIES)
    )


def _first_other_row(scores_BK: Tensor) -> int | None:
    """Return the first row that is not probabilities; rows are examined one by one only if it is needed."""
    values_BK = single_or_double(scores_BK)
    if bool(values_BK.min() < 0):
        other_B = values_BK.amin(dim=1) < 0
    elif bool((values_BK.sum(dim=1) - 1).abs().max() <= SUM_TOLERANCE):
        return None
    else:
        other_B = ~probability_rows(values_BK)
    return int(other_B.nonzero()[0, 0]) if bool(other_B.any()) else None


def normalize(probabilities_BK: Tensor) -> Tensor:
    """Return probabilities whose rows sum to 1, in at least single precision.

    >>> normalize(torch.tensor([[0.67, 0.34]])).sum().item()
    1.0
    """
    values_BK = single_or_double(probabilities_BK)
    return values_BK / values_BK.sum(dim=1)[:, None]


def check_probabilities(probabilities_NK: Matrix) -> None:
    """Check that all rows are probabilities; see :func:`probability_rows`.

    Raises:
        ValueError: if a row is not, with its number.
    """
    samples, classes = probabilities_NK.shape
    for rows in row_chunks(samples, classes, CACHED_ENTRIES):
        values_BK = probabilities_NK[rows]
        row = _first_other_row(values_BK)
        if row is not None:
            lowest, total = float(values_BK[row].min()), float(values_BK[row].sum())
            found = f"has an entry of {lowest:.4g}" if lowest < 0 else f"sums to {total:.4g}"
            raise ValueError(
                f"probabilities must not be negative and every row must sum to 1, but row {rows.start + row} {found}: "
                "pass raw scores as logits."
            )


def log_probabilities(probabilities_BK: Tensor) -> Tensor:
    """Return ln p, whose softmax is p, so that probabilities can be treated as logits; ln 0 is finite."""
    values_BK = single_or_double(probabilities_BK)
    return values_BK.clamp(min=torch.finfo(values_BK.dtype).tiny).log()


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
