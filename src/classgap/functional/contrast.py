"""Contrastive terms: supervised (SupCon), with class prototypes (DRO-LT), and of the scores of a class."""

from __future__ import annotations

import torch
from torch import Tensor

from classgap.functional.class_groups import ClassGroups
from classgap.functional.sample_pairs import SamplePairs, distances


def supervised_contrast(unit_BD: Tensor, unit_ND: Tensor, pairs: SamplePairs, *, temperature: float) -> Tensor:
    """-(1/|P|) Σ_{p∈P} ln[ exp(f·f_p/τ) / Σ_{a≠i} exp(f·f_a/τ) ] for each anchor, SupCon's L_out, Eq. (2).

    The mean over positives is outside the logarithm; the denominator includes positives and negatives. The term of an
    anchor without a positive is 0, with zero gradient.

    >>> f = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> supervised_contrast(f, f, SamplePairs.from_labels(torch.tensor([0, 0, 1, 1])), temperature=1.0)  # ln(e + 2) - 1
    tensor([0.5514, 0.5514, 0.5514, 0.5514])
    """
    score_BN = unit_BD @ unit_ND.T / temperature
    # The lowest number instead of -inf keeps the sum of an anchor without other samples finite, without NaN gradients.
    total_B = torch.logsumexp(score_BN.masked_fill(~pairs.other_BN, torch.finfo(score_BN.dtype).min), dim=1)
    positives_B = pairs.positive_BN.sum(dim=1)
    mean_B = torch.where(pairs.positive_BN, score_BN, 0).sum(dim=1) / positives_B.clamp(min=1)
    return torch.where(positives_B > 0, total_B - mean_B, 0)


def prototype_contrast(
    features_ND: Tensor,
    groups: ClassGroups,
    prototypes_UD: Tensor,
    epsilon_U: Tensor,
    *,
    rows: slice = slice(None),
    temperature: float = 1.0,
    squared: bool = False,
) -> Tensor:
    """ln Σ_{x'} exp[(‖f - μ_y‖ - ‖f' - μ_y‖ + ε_y 1[y' ≠ y]) / τ] for the samples ``rows``, DRO-LT; ELM Eq. (5).

    The sum is over all samples including x, so the term is nonnegative. The published code subtracts ε_y from the
    logits of the class itself, which is equivalent. Samples without a class have the term 0.

    >>> from classgap.functional import group_by_class
    >>> f, groups = torch.tensor([[0.0], [10.0]]), group_by_class(torch.tensor([0, 1]), num_classes=2)
    >>> prototype_contrast(f, groups, f, torch.ones(2))  # ln(1 + e^(1 - 10))
    tensor([0.0001, 0.0001])
    """
    other_UN = torch.arange(len(prototypes_UD), device=features_ND.device)[:, None] != groups.group_N
    near_UN = epsilon_U[:, None] * other_UN - distances(prototypes_UD, features_ND, squared=squared)
    if not groups.complete:
        near_UN = near_UN.masked_fill(groups.group_N == len(prototypes_UD), torch.finfo(near_UN.dtype).min)
    total_U = torch.logsumexp(near_UN / temperature, dim=1)
    own_B = torch.linalg.vector_norm(features_ND[rows] - groups.of_samples(prototypes_UD, rows), dim=1)
    own_B = own_B.square() if squared else own_B
    terms_B = groups.of_samples(total_U, rows) + own_B / temperature
    return terms_B if groups.complete else torch.where(groups.group_N[rows] < len(prototypes_UD), terms_B, 0)


def score_contrast(
    scores_BK: Tensor, labels_B: Tensor, scores_MK: Tensor, other_BM: Tensor, *, temperature: float = 1.0
) -> Tensor:
    """ln[1 + Σ_{x⁻} exp((z_y(x⁻) - z_y(x)) / τ)] for each sample x of class y, Liu and Abbeel 2020 in ELM Sec. 3.2.

    It compares the *samples* for a class, while cross-entropy compares the classes for a sample. Samples without a
    class have the term 0.

    Args:
        scores_BK: Scores z of the anchors.
        labels_B: Classes of the anchors.
        scores_MK: Scores z of the samples to contrast with.
        other_BM: Which samples each anchor is contrasted with.
        temperature: Temperature τ.

    >>> z = torch.tensor([[5.0, 1.0], [5.0, 3.0]])
    >>> score_contrast(z, torch.tensor([0, -1]), z, ~torch.eye(2, dtype=torch.bool))  # ln 2
    tensor([0.6931, 0.0000])
    """
    own_B = labels_B.clamp(min=0)
    lead_BM = scores_MK.T.index_select(0, own_B) - scores_BK.gather(1, own_B[:, None])
    lead_BM = (lead_BM / temperature).masked_fill(~other_BM, -torch.inf)
    # The "1 +" of the formula is an additional column, e⁰.
    terms_B = torch.logsumexp(torch.nn.functional.pad(lead_BM, (0, 1)), dim=1)
    return torch.where(labels_B >= 0, terms_B, 0)
