"""Concentration and separation of the outputs P = softmax(z) of the classes (Yang et al. 2023).

"Conditional Mutual Information Constrained Deep Learning for Classification", TNNLS 2025, arXiv 2309.09123.
"""

from __future__ import annotations

import math

from torch import Tensor

from classgap.functional.class_groups import ClassGroups

# Lower limit of probabilities inside logarithms: cross-entropy between outputs is unbounded, and maximizing it would
# drive probabilities to 0.
SMALLEST_PROBABILITY = 1e-6


def concentration(log_p_BK: Tensor, centroids_BK: Tensor) -> Tensor:
    """KL(P_i ‖ Q_{y_i}) for each sample; its mean is the conditional mutual information I(X; Ŷ | Y).

    The centroids Q carry no gradient.

    >>> import torch
    >>> p = torch.tensor([[0.8, 0.2], [0.6, 0.4]])
    >>> concentration(p.log(), p.mean(dim=0).expand(2, 2)).mean()
    tensor(0.0242)
    """
    log_q_BK = centroids_BK.detach().clamp(min=SMALLEST_PROBABILITY).log()
    return (log_p_BK.exp() * (log_p_BK - log_q_BK)).sum(dim=1)


def separation(log_p_NK: Tensor, groups: ClassGroups, rows: slice = slice(None)) -> Tensor:
    """(1/N) Σ_{j: y_j ≠ y_i} H(P_i, P_j) for each sample i of some ``rows``, H(P, R) = -Σ_k P_k ln R_k.

    Its mean over samples is Γ, over all N² pairs. The cost is linear in N, because the sum over other classes is the
    sum over all classes minus that over the class itself. Samples without a class are in no pair.

    >>> import torch
    >>> from classgap.functional import group_by_class
    >>> p = torch.tensor([[0.8, 0.2], [0.3, 0.7]])
    >>> separation(p.log(), group_by_class(torch.tensor([0, 1]), num_classes=2)).mean()
    tensor(0.5570)
    """
    own_UK = groups.sum(log_p_NK.clamp(min=math.log(SMALLEST_PROBABILITY)))
    others_UK = own_UK.sum(dim=0) - own_UK
    others_BK = groups.of_samples(others_UK, rows) / groups.counts_U.sum().clamp(min=1)
    return -(log_p_NK[rows].exp() * others_BK).sum(dim=1)
