"""Margins, confidence and rank of the true class of each sample, in one pass over the logits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
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
    # One buffer that is changed in place: the system needs longer to provide new memory than the arithmetic takes.
    step = next(row_chunks(samples, classes, CACHED_ENTRIES), slice(0, 0)).stop
    buffer_BK = torch.empty(step, classes, dtype=torch.promote_types(logits_NK.dtype, torch.float32))
    for rows in row_chunks(samples, classes, CACHED_ENTRIES):
        z_BK = buffer_BK[: rows.stop - rows.start].copy_(logits_NK[rows])
        y_B1 = torch.from_numpy(targets_N[rows])[:, None]
        own_B1 = z_BK.gather(1, y_B1)
        own_B, runner_B = own_B1[:, 0], z_BK.scatter_(1, y_B1, -torch.inf).amax(dim=1)
        z_BK.scatter_(1, y_B1, own_B1)
        rank_N[rows] = _ranks(z_BK, own_B1, y_B1, runner_B)
        highest_B = torch.maximum(own_B, runner_B)
        log_total_B = z_BK.sub_(highest_B[:, None]).exp_().sum(dim=1).log_().add_(highest_B)
        own_p, runner_p = (own_B - log_total_B).exp(), (runner_B - log_total_B).exp()
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
    small = np.min_scalar_type(z_BK.shape[1])
    earlier_EK = np.arange(z_BK.shape[1], dtype=small) < y_B1[behind].numpy().astype(small)
    ahead_EK = (z_EK > own_E1) | ((z_EK >= own_E1) & earlier_EK)
    rank_B[behind.numpy()] = np.add.reduce(ahead_EK.view(np.uint8), axis=1, dtype=small)
    return rank_B
