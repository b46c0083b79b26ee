"""The two terms of range loss: the range of each class, and the distance of the nearest centers.

Zhang et al., "Range loss for deep face recognition with long-tailed training data", ICCV 2017, arXiv 1611.08976; the
ELM paper describes the second in Sec. 3.2.
"""

from __future__ import annotations

import torch
from torch import Tensor

from classgap.functional.class_groups import ClassGroups
from classgap.functional.sample_pairs import distances

SMALLEST_RANGE = 1e-6  # lower limit of ranges, which the harmonic mean divides by


def widest_ranges(distance_NN: Tensor, groups: ClassGroups, count: int) -> Tensor:
    """Harmonic mean k / Σ_{j≤k} 1/D_j of the k largest distances within each class, (U,).

    A class with fewer than k pairs uses all of them. 0 for a class of one sample.

    Args:
        distance_NN: Distances D between all samples.
        groups: Classes of the samples.
        count: Number k of distances.

    >>> from classgap.functional import group_by_class
    >>> x = torch.tensor([[0.0], [1.0], [2.0], [7.0]])
    >>> widest_ranges(distances(x, x), group_by_class(torch.tensor([0, 0, 0, 1]), num_classes=2), 2)
    tensor([1.3333, 0.0000])
    """
    classes, samples = len(groups.classes_U), len(distance_NN)
    row_P, column_P = torch.triu_indices(samples, samples, offset=1, device=distance_NN.device)
    group_P = groups.group_N[row_P]
    pair_P = (group_P == groups.group_N[column_P]) & (group_P < classes)
    if not torch.compiler.is_compiling():
        kept_P = pair_P.nonzero().squeeze(1)  # one read from the device; each boolean mask would need its own
        row_P, column_P, group_P, pair_P = (each[kept_P] for each in (row_P, column_P, group_P, pair_P))
    group_P = torch.where(pair_P, group_P, classes)
    distance_P = distance_NN[row_P, column_P]
    order_P = distance_P.detach().argsort(descending=True)
    order_P = order_P[group_P[order_P].argsort(stable=True)]  # by class, largest distance first
    group_P, distance_P = group_P[order_P], distance_P[order_P]
    rank_P = torch.arange(len(group_P), device=group_P.device) - torch.searchsorted(group_P, group_P)
    inverse_P = torch.where(rank_P < count, distance_P.clamp(min=SMALLEST_RANGE).reciprocal(), 0)
    sums = inverse_P.new_zeros(2, classes + 1)
    sums = sums.index_add(1, group_P, torch.stack([(rank_P < count).to(inverse_P.dtype), inverse_P]))
    used_U, inverse_U = sums[:, :classes]
    return used_U / inverse_U.clamp(min=torch.finfo(inverse_U.dtype).tiny)


def nearest_centers(centers_UD: Tensor, groups: ClassGroups, *, squared: bool = False) -> Tensor:
    """Distance between the two nearest class centers, or its square; infinite for fewer than two classes.

    >>> from classgap.functional import group_by_class
    >>> groups = group_by_class(torch.tensor([0, 1, 2]), num_classes=3)
    >>> nearest_centers(torch.tensor([[0.0], [5.0], [7.0]]), groups)
    tensor(2.)
    """
    apart_UU = distances(centers_UD, centers_UD, squared=squared)
    present_U = groups.counts_U > 0
    two_UU = (present_U[:, None] & present_U).triu(diagonal=1)
    nothing = apart_UU.new_full((1,), torch.inf)
    return torch.cat([apart_UU.masked_fill(~two_UU, torch.inf).flatten(), nothing]).amin()
