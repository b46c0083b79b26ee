"""Margins, confidence, rank of the true class and prediction of each sample, in one pass over the logits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from classgap.audit._types import Floats, Integers
from classgap.audit.io.rows import CACHED_ENTRIES, Matrix, highest_columns, row_chunks


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
    own_N1, log_own_N1, runner_N1 = (torch.empty(samples, 1, dtype=kind) for _ in range(3))
    y_N1 = torch.from_numpy(targets_N)[:, None]
    other_N, rank_N = np.empty(samples, dtype=np.int64), np.zeros(samples, dtype=np.int64)
    lowest = np.inf
    # Two buffers for all chunks: the system needs longer to provide new memory than the arithmetic takes.
    step = next(row_chunks(samples, classes, CACHED_ENTRIES), slice(0, 0)).stop
    buffer_BK, log_buffer_BK = (torch.empty(step, classes, dtype=kind) for _ in range(2))
    for rows in row_chunks(samples, classes, CACHED_ENTRIES):
        size, y_B1 = rows.stop - rows.start, y_N1[rows]
        z_BK = buffer_BK[:size].copy_(logits_NK[rows])
        lowest = np.minimum(lowest, z_BK.numpy().min())  # NaN if any score is
        # Faster than the exponentials of all logits: torch fuses the steps.
        log_p_BK = torch.log_softmax(z_BK, dim=1, out=log_buffer_BK[:size])
        torch.gather(log_p_BK, 1, y_B1, out=log_own_N1[rows])
        own_B1 = torch.gather(z_BK, 1, y_B1, out=own_N1[rows])
        other_N[rows] = highest_columns(z_BK.scatter_(1, y_B1, -torch.inf))
        runner_B1 = torch.gather(z_BK, 1, torch.from_numpy(other_N[rows, None]), out=runner_N1[rows])
        behind = np.flatnonzero(~(own_B1 > runner_B1).numpy())
        rank_N[rows.start + behind] = _ranks(z_BK.numpy()[behind], own_B1.numpy()[behind], y_B1.numpy()[behind])
    own_N, log_own_N, runner_N = own_N1[:, 0], log_own_N1[:, 0], runner_N1[:, 0]
    own_p_N, runner_p_N = log_own_N.exp(), (log_own_N - (own_N - runner_N)).exp()
    first_N = ((own_N > runner_N) | ((own_N == runner_N) & (y_N1[:, 0] < torch.from_numpy(other_N)))).numpy()
    margins = [(a - b).double().numpy() for a, b in ((own_p_N, runner_p_N), (own_N, runner_N))]
    if classes == 1:  # no other class
        margins = [np.full(samples, np.nan)] * 2
    highest = float(torch.maximum(own_N, runner_N).max()) if samples else -np.inf  # NaN if one is
    return SampleScores(
        confidence_N=torch.maximum(own_p_N, runner_p_N).double().numpy(),
        output_margin_N=margins[0],
        logit_margin_N=margins[1],
        rank_N=rank_N,
        predictions_N=np.where(first_N, targets_N, other_N),
        limits=(float(lowest), highest),
    )


def _ranks(others_EK: NDArray[Any], own_E1: NDArray[Any], y_E1: Integers) -> Integers:
    """Number of classes ahead of the true one, whose score is replaced by -inf; equal ones are ordered by index."""
    # NumPy compares with broadcasting, and sums bytes, several times faster than torch.
    above_E, reached_E = _count_rows(others_EK > own_E1), _count_rows(others_EK >= own_E1)
    tied = np.flatnonzero(reached_E > above_E)
    earlier_TK = np.arange(others_EK.shape[1]) < y_E1[tied]
    above_E[tied] += _count_rows((others_EK[tied] == own_E1[tied]) & earlier_TK)
    return above_E


def _count_rows(flags_EK: NDArray[np.bool_]) -> Integers:
    smallest = np.min_scalar_type(flags_EK.shape[1])
    return np.add.reduce(flags_EK.view(np.uint8), axis=1, dtype=smallest).astype(np.int64)
