"""The farthest sample of the same class, and the pull with a maximum instead of a sum: MR² Eq. (3), ELM Sec. 3.1."""

from __future__ import annotations

import torch
from torch import Tensor

from classgap.functional import group_by_class
from classgap.theory.arguments import check_labels, check_matrix, check_vector

BLOCK_ROWS = 4096  # samples whose distances to their class are in memory at once


def farthest_distances(features_ND: Tensor, labels_N: Tensor, num_classes: int) -> Tensor:
    """d_max(x) = max_{x⁺} ‖Φ(x) - Φ(x⁺)‖ over the samples of the same class, ELM Fig. 4.

    The figure divides it by the largest norm of a feature. 0 for a sample alone in its class, NaN for a sample
    without a class.

    >>> features, labels = torch.tensor([[0.0], [1.0], [4.0], [9.0]]), torch.tensor([0, 0, 0, 1])
    >>> farthest_distances(features, labels, num_classes=2)
    tensor([4., 3., 4., 0.])
    """
    features_ND = check_matrix("features_ND", features_ND)
    groups = group_by_class(check_labels(labels_N, num_classes, rows=len(features_ND)), num_classes)
    order_N = groups.group_N.argsort(stable=True)
    far_N = features_ND.new_full((len(features_ND),), torch.nan)
    for rows in order_N[: int(groups.counts_U.sum())].split(groups.counts_U.tolist()):
        far_N[rows] = _farthest(features_ND[rows])
    return far_N


def _farthest(points_ND: Tensor) -> Tensor:
    """Find the farthest points by matrix products of centered points, then compute distances from differences."""
    centered_ND = points_ND - points_ND.mean(dim=0)
    norms_N = centered_ND.square().sum(dim=1)
    blocks = []
    for start in range(0, len(points_ND), BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        squared = torch.addmm(norms_N[rows, None] + norms_N, centered_ND[rows], centered_ND.T, alpha=-2)
        blocks.append((points_ND[rows] - points_ND[squared.argmax(dim=1)]).norm(dim=1))
    return torch.cat(blocks)


def hard_pull(features_ND: Tensor, labels_N: Tensor, slack_K: Tensor) -> Tensor:
    """max_{x⁺} [‖φ(x) - φ(x⁺)‖² - slack]₊ of each sample: MR² Eq. (3) for 2s̄, Ω̃_pull of ELM Sec. 3.1 for α_y.

    ``functional.pull`` is its smooth form: for a class of n samples, hard ≤ pull ≤ hard + ln n. The papers state the
    first inequality (ELM as strict). The second holds because the pull is the logarithm of a sum of n exponentials, n
    - 1 positives and the 1, none of which exceeds e^hard. The pull can thus be up to ln n even if no pair exceeds the
    slack.

    Args:
        features_ND: Features φ.
        labels_N: Class of each row, or -1.
        slack_K: Slack of each class: 2s̄ for all in MR², α_y in ELM.

    >>> features, labels = torch.tensor([[0.0], [2.0], [5.0]]), torch.tensor([0, 0, 1])
    >>> hard_pull(features, labels, torch.tensor([1.0, 1.0]))  # the pull is ln(1 + e³) = 3.0486
    tensor([3., 3., 0.])
    """
    slack_K = check_vector("slack_K", slack_K, len(slack_K))
    features_ND = check_matrix("features_ND", features_ND)
    labels_N = check_labels(labels_N, len(slack_K), rows=len(features_ND))
    far_N = farthest_distances(features_ND, labels_N, len(slack_K))
    excess_N = (far_N.square() - slack_K.to(far_N)[labels_N.clamp(min=0)]).clamp(min=0)
    # A class of one sample has no pairs, also if its slack is negative; its farthest distance is 0.
    counts_K = labels_N[labels_N >= 0].bincount(minlength=len(slack_K))
    return torch.where(counts_K[labels_N.clamp(min=0)] > 1, excess_N, excess_N.clamp(max=0))
