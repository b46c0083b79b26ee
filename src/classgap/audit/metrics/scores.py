"""Margins, confidence, rank of the true class and prediction of each sample, in one pass over the logits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from classgap.audit._types import Floats, Integers
from classgap.audit.io.rows import CACHED_ENTRIES, Matrix, row_chunks


@dataclass(frozen=True)
class SampleScores:
    """Margins, confidence, rank and prediction of each sample.

    Attributes:
        confidence_N: probability of the predicted class.
        output_margin_N: m_o = P(y) - max_{y'≠y} P(y') (MR² Table 4); NaN with a single class.
        logit_margin_N: z_y - max_{y'≠y} z_{y'} (ELM Fig. 3); NaN with a single class.
        rank_N: rank of the true class from 0; ties are broken by class index.
        predictions_N: class with the highest score, the first of equal ones.
        limits: lowest and highest score of all samples; not finite if any score is not.
    """

    confidence_N: Floats
    output_margin_N: Floats
    logit_margin_N: Floats
    rank_N: Integers
    predictions_N: Integers
    limits: tuple[float, float]

    def take(self, rows: Integers) -> SampleScores:
        """Return the scores of some samples."""
        return SampleScores(
            self.confidence_N[rows],
            self.output_margin_N[rows],
            self.logit_margin_N[rows],
            self.rank_N[rows],
            self.predictions_N[rows],
            self.limits,
        )


def score_samples(logits_NK: Matrix, targets_N: Integers) -> SampleScores:
    """Score each sample, in chunks of rows so that memory is bounded.

    >>> figures = score_samples(torch.tensor([[0.0, 2.0, 1.0]]), np.array([2]))
    >>> figures.logit_margin_N.tolist(), figures.rank_N.tolist(), figures.predictions_N.tolist(), figures.limits
    ([-1.0], [1], [1], (0.0, 2.0))
    """
    samples, classes = logits_NK.shape
    kind = torch.promote_types(logits_NK.dtype, torch.float32)
    own_N, runner_N, own_p_N, runner_p_N = (torch.empty(samples, dtype=kind).numpy() for _ in range(4))
    other_N, rank_N = np.empty(samples, dtype=np.int64), np.zeros(samples, dtype=np.int64)
    lowest = np.inf
    # Two buffers for all chunks: the system needs longer to provide new memory than the arithmetic takes.
    step = next(row_chunks(samples, classes, CACHED_ENTRIES), slice(0, 0)).stop
    buffer_BK, p_buffer_BK = (torch.empty(step, classes, dtype=kind) for _ in range(2))
    for rows in row_chunks(samples, classes, CACHED_ENTRIES):
        size, y_B = rows.stop - rows.start, targets_N[rows]
        scores_BK = buffer_BK[:size].copy_(logits_NK[rows])
        # Faster than the exponentials of all logits: torch fuses the steps.
        p_BK = torch.softmax(scores_BK, dim=1, out=p_buffer_BK[:size]).numpy()
        z_BK, at_B = scores_BK.numpy(), np.arange(size)  # NumPy picks and compares single entries faster than torch
        lowest = np.minimum(lowest, z_BK.min())  # NaN if any score is
        own_N[rows], own_p_N[rows] = z_BK[at_B, y_B], p_BK[at_B, y_B]
        z_BK[at_B, y_B] = -np.inf
        other_N[rows] = other_B = z_BK.argmax(axis=1)
        runner_N[rows], runner_p_N[rows] = z_BK[at_B, other_B], p_BK[at_B, other_B]
        behind = np.flatnonzero(~(own_N[rows] > runner_N[rows]))
        rank_N[rows.start + behind] = _ranks(z_BK[behind], own_N[rows.start + behind, None], y_B[behind])
    first_N = (own_N > runner_N) | ((own_N == runner_N) & (targets_N < other_N))
    with np.errstate(invalid="ignore"):  # infinite scores are rejected by their limits
        margins = [(a - b).astype(np.float64) for a, b in ((own_p_N, runner_p_N), (own_N, runner_N))]
    if classes == 1:  # no other class
        margins = [np.full(samples, np.nan)] * 2
    highest = float(np.maximum(own_N, runner_N).max()) if samples else -np.inf  # NaN if one is
    return SampleScores(
        confidence_N=np.maximum(own_p_N, runner_p_N).astype(np.float64),
        output_margin_N=margins[0],
        logit_margin_N=margins[1],
        rank_N=rank_N,
        predictions_N=np.where(first_N, targets_N, other_N),
        limits=(float(lowest), highest),
    )


def _ranks(others_EK: NDArray[Any], own_E1: NDArray[Any], y_E: Integers) -> Integers:
    """Number of classes ahead of the true one, whose score is replaced by -inf; equal ones are ordered by index."""
    classes = others_EK.shape[1]
    above_EK = others_EK > own_E1
    above_E = np.add.reduce(above_EK.view(np.uint8), axis=1, dtype=np.min_scalar_type(classes)).astype(np.int64)
    row, column = np.divmod(np.flatnonzero(others_EK == own_E1), classes)
    return above_E + np.bincount(row[column < y_E[row]], minlength=len(y_E))
