"""Margins, confidence and rank of the true class of each sample, in one pass over the logits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from classgap.audit._types import Floats, Integers
from classgap.audit.io.rows import CACHED_ENTRIES, Matrix, row_chunks


@dataclass(frozen=True)
class SampleScores:
    """Margins, confidence and rank of each sample.

    Attributes:
        confidence_N: probability of the predicted class.
        output_margin_N: m_o = P(y) - max_{y'≠y} P(y') (MR² Table 4); NaN with a single class.
        logit_margin_N: z_y - max_{y'≠y} z_{y'} (ELM Fig. 3); NaN with a single class.
        rank_N: rank of the true class from 0; ties are broken by class index.
    """

    confidence_N: Floats
    output_margin_N: Floats
    logit_margin_N: Floats
    rank_N: Integers

    def take(self, rows: Integers) -> SampleScores:
        """Return the scores of some samples."""
        return SampleScores(
            self.confidence_N[rows], self.output_margin_N[rows], self.logit_margin_N[rows], self.rank_N[rows]
        )


def score_samples(logits_NK: Matrix, targets_N: Integers) -> SampleScores:
    """Score each sample, in chunks of rows so that memory is bounded.

    >>> figures = score_samples(torch.tensor([[0.0, 2.0, 1.0]]), np.array([2]))
    >>> figures.logit_margin_N.tolist(), figures.rank_N.tolist()
    ([-1.0], [1])
    """
    samples, classes = logits_NK.shape
    confidence_N, output_N, logit_N = np.empty(samples), np.empty(samples), np.empty(samples)
    rank_N = np.empty(samples, dtype=np.int64)
    # Two buffers for all chunks: the system needs longer to provide new memory than the arithmetic takes.
    step = next(row_chunks(samples, classes, CACHED_ENTRIES), slice(0, 0)).stop
    buffer_BK = torch.empty(step, classes, dtype=torch.promote_types(logits_NK.dtype, torch.float32))
    log_buffer_BK = torch.empty_like(buffer_BK)
    for rows in row_chunks(samples, classes, CACHED_ENTRIES):
        z_BK = buffer_BK[: rows.stop - rows.start].copy_(logits_NK[rows])
        # Faster than the exponentials of all logits: torch fuses the steps.
        log_p_BK = torch.log_softmax(z_BK, dim=1, out=log_buffer_BK[: len(z_BK)])
        y_B1 = torch.from_numpy(targets_N[rows])[:, None]
        own_B1 = z_BK.gather(1, y_B1)
        own_B, runner_B = own_B1[:, 0], z_BK.scatter_(1, y_B1, -torch.inf).amax(dim=1)
        z_BK.scatter_(1, y_B1, own_B1)
        rank_N[rows] = _ranks(z_BK, own_B1, y_B1, runner_B)
        log_own_B = log_p_BK.gather(1, y_B1)[:, 0]
        own_p, runner_p = log_own_B.exp(), (log_own_B - (own_B - runner_B)).exp()
        confidence_N[rows] = torch.maximum(own_p, runner_p).numpy()
        output_N[rows] = (own_p - runner_p).numpy()
        logit_N[rows] = (own_B - runner_B).numpy()
    if classes == 1:  # no other class
        output_N[:], logit_N[:] = np.nan, np.nan
    return SampleScores(confidence_N, output_N, logit_N, rank_N)


def _ranks(z_BK: Tensor, own_B1: Tensor, y_B1: Tensor, runner_B: Tensor) -> Integers:
    """Number of classes ahead of the true one; only rows where some class is ahead or equal are counted."""
    rank_B = np.zeros(len(z_BK), dtype=np.int64)
    behind = (own_B1[:, 0] <= runner_B).nonzero()[:, 0]
    # NumPy compares with broadcasting, and sums bytes, several times faster than torch.
    z_EK, own_E1 = z_BK.index_select(0, behind).numpy(), own_B1[behind].numpy()
    above_E, reached_E = _count_rows(z_EK > own_E1), _count_rows(z_EK >= own_E1)
    tied = np.flatnonzero(reached_E > above_E + 1)  # the true class reaches its own score
    earlier_TK = np.arange(z_BK.shape[1]) < y_B1[behind].numpy()[tied]
    above_E[tied] += _count_rows((z_EK[tied] == own_E1[tied]) & earlier_TK)
    rank_B[behind.numpy()] = above_E
    return rank_B


def _count_rows(flags_EK: NDArray[np.bool_]) -> Integers:
    smallest = np.min_scalar_type(flags_EK.shape[1])
    return np.add.reduce(flags_EK.view(np.uint8), axis=1, dtype=smallest).astype(np.int64)
