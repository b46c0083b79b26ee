"""Margins, confidence and rank of the true class of each sample, in one pass over the logits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from classgap.audit._types import Floats, Integers

CHUNK_ENTRIES = 4_000_000  # scores converted to float32 at a time, 16 MB


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


def score_samples(logits_NK: Tensor, targets_N: Integers) -> SampleScores:
    """Score each sample, in chunks of rows so that memory is bounded.

    >>> figures = score_samples(torch.tensor([[0.0, 2.0, 1.0]]), np.array([2]))
    >>> figures.logit_margin_N.tolist(), figures.rank_N.tolist()
    ([-1.0], [1])
    """
    classes = logits_NK.shape[1]
    parts: list[tuple[Tensor, ...]] = []
    for rows in row_chunks(*logits_NK.shape):
        z_BK = logits_NK[rows]
        z_BK = z_BK.to(torch.promote_types(z_BK.dtype, torch.float32))
        y_B1 = torch.from_numpy(targets_N[rows])[:, None]
        own_B1 = z_BK.gather(1, y_B1)
        others_BK = z_BK.scatter(1, y_B1, -torch.inf)
        runner_B = others_BK.amax(dim=1)
        log_total_B = z_BK.logsumexp(dim=1)
        ahead_BK = (z_BK > own_B1) | ((z_BK == own_B1) & (torch.arange(classes) < y_B1))
        own_B = own_B1[:, 0]
        own_p, runner_p = (own_B - log_total_B).exp(), (runner_B - log_total_B).exp()
        parts.append((torch.maximum(own_p, runner_p), own_p - runner_p, own_B - runner_B, ahead_BK.sum(dim=1)))
    confidence, output, logit, rank = (torch.cat(column) for column in zip(*parts, strict=True))
    if classes == 1:  # no other class
        output, logit = torch.full_like(output, torch.nan), torch.full_like(logit, torch.nan)
    return SampleScores(_floats(confidence), _floats(output), _floats(logit), rank.numpy())


def row_chunks(rows: int, columns: int, entries: int = CHUNK_ENTRIES) -> Iterator[slice]:
    """Split the rows of a matrix into slices of about ``entries`` entries.

    >>> list(row_chunks(5, 2, entries=4))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, entries // max(columns, 1))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def _floats(values: Tensor) -> NDArray[np.float64]:
    return values.double().numpy()
