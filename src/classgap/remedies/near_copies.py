"""Samples that two files share with scores of different precision, which hashes do not find."""

from __future__ import annotations

import torch
from torch import Tensor

from classgap.audit._types import Floats, Integers

TOLERANCE = 1e-3  # of a probability; half precision and three decimals stay below
UNDECIDED = 0.02  # least third highest probability: nearly certain rows are alike for many samples
MIN_SHARE = 0.3  # of the undecided rows: fewer may be duplicates in the data
MIN_COPIES = 10
WITHIN = 5  # copies per row that another row of its own file resembles as much


def count_near_copies(fit_NK: Tensor, fit_labels_N: Integers, test_NK: Tensor, test_labels_N: Integers) -> int:
    """Return how many test rows are fitting rows of another precision; 0 if coincidences explain the pairs.

    Rows match if the label and the three most likely classes are equal, and their probabilities nearly. Rows with fewer
    than three likely classes say too little and are left out.

    Args:
        fit_NK: logits or log-probabilities of the fitting samples.
        fit_labels_N: their labels.
        test_NK: logits or log-probabilities of the test samples.
        test_labels_N: their labels.

    >>> logits = torch.randn(50, 4, generator=torch.Generator().manual_seed(0)) / 2
    >>> labels = torch.zeros(50).long().numpy()
    >>> count_near_copies(logits, labels, logits.softmax(1).half().float().log(), labels)
    50
    >>> count_near_copies(logits[:25], labels[:25], logits[25:], labels[25:])
    0
    """
    from scipy.spatial import KDTree

    if fit_NK.shape[1] < 3:
        return 0
    fit, test = _points(fit_NK, fit_labels_N), _points(test_NK, test_labels_N)
    fewest = min(len(fit), len(test))
    if fewest < MIN_COPIES:
        return 0
    tree = KDTree(fit)
    distances, _ = tree.query(test, p=float("inf"), distance_upper_bound=TOLERANCE)
    copies = int((distances < TOLERANCE).sum())
    if copies < max(MIN_COPIES, MIN_SHARE * fewest):
        return 0
    others, _ = tree.query(fit, k=[2], p=float("inf"), distance_upper_bound=TOLERANCE)
    return copies if copies > WITHIN * int((others < TOLERANCE).sum()) else 0


def _points(scores_NK: Tensor, labels_N: Integers) -> Floats:
    """The three highest probabilities, and whole numbers that are equal if label and classes are."""
    top = scores_NK.float().softmax(dim=1).topk(3, dim=1)
    codes_N4 = torch.cat([torch.from_numpy(labels_N)[:, None], top.indices], dim=1)
    undecided_N = top.values[:, 2] > UNDECIDED
    return torch.cat([top.values, codes_N4], dim=1)[undecided_N].double().numpy()
