"""Rank of the best valid label among a sample's scores."""

from __future__ import annotations

import numpy as np
import torch

from classgap.audit._types import Integers
from classgap.audit.io.label_sets import LabelSets
from classgap.audit.io.rows import Matrix, as_tensor, row_chunks, take_rows


def valid_ranks(logits_NK: Matrix, sets: LabelSets, targets_N: Integers, target_rank_N: Integers) -> Integers:
    """Return the rank of the highest-scored valid class from 0, (N,); K for samples without a valid class.

    Equal scores are ranked by class index, as for the true class, whose rank is known already.

    >>> sets = LabelSets(np.array([0, 2]), np.array([0, 2, 2]))
    >>> logits_NK = torch.tensor([[0.0, 2.0, 1.0], [0.0, 2.0, 1.0]])
    >>> valid_ranks(logits_NK, sets, np.array([0, 0]), np.array([2, 2])).tolist()
    [1, 3]
    """
    classes = logits_NK.shape[1]
    ranks_N = np.where(sets.contain(targets_N), target_rank_N, classes)
    rows_P = np.repeat(np.arange(len(sets)), sets.sizes_N)
    open_P = (sets.classes != targets_N[rows_P]) & (ranks_N[rows_P] > 0)  # others cannot change the best rank
    rows_P, classes_P = rows_P[open_P], sets.classes[open_P]
    for part in row_chunks(len(rows_P), classes):
        z_BK = as_tensor(take_rows(logits_NK, rows_P[part]))
        z_BK = z_BK.to(torch.promote_types(z_BK.dtype, torch.float32))
        class_B1 = torch.from_numpy(classes_P[part])[:, None]
        own_B1 = z_BK.gather(1, class_B1)
        ahead_BK = (z_BK > own_B1) | ((z_BK == own_B1) & (torch.arange(classes) < class_B1))
        np.minimum.at(ranks_N, rows_P[part], ahead_BK.sum(dim=1).numpy())
    return ranks_N
