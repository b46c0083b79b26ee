"""Samples that two files share, exactly or in another precision."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from classgap.audit._types import Floats, Integers
from classgap.audit.io.predictions import Predictions
from classgap.audit.io.rows import as_tensor

COINCIDENCES = 0.005  # fraction of rows that may be equal in two files by chance if values are coarse
UNLIKELY = 0.01  # expected pairs of equal rows below which an equal row is no coincidence
SCORE_COLUMNS, FEATURE_COLUMNS = 8, 512  # to estimate how often different samples have equal values
SAMPLED = 2_000  # rows for that estimate
SATURATED = 86.0  # distance of logits at which a probability is 0 in float32
TOLERANCE = 1e-3  # of a probability; half precision and three decimals stay below
UNDECIDED = 0.02  # least third highest probability: nearly certain rows are alike for many samples
MIN_SHARE = 0.2  # of the undecided rows: fewer may be duplicates in the data
MIN_COPIES = 10
TIMES_CHANCE = 5  # pairs of nearly equal rows per pair that chance explains
PRIOR_PAIRS = 3  # added to the pairs within a file: the upper 95 % bound of a count of 0


def shared_samples(fit: Predictions, test: Predictions) -> list[tuple[int, int]]:
    """Return pairs of rows, one of each file, with identical scores and labels.

    Rows that repeat within a file say nothing about identity and are left out, and so are rows with all probability on
    one class. Rounded scores and duplicates in the data make rows equal about as often between files as within them: if
    repeated rows explain the pairs, the result is empty, unless the files are equal.

    >>> scores = [[0.1, 0.7], [2.0, 0.3], [1.5, 0.2]]
    >>> fit = Predictions.from_arrays([0, 1, 0], logits=scores)
    >>> shared_samples(fit, Predictions.from_arrays([1, 0], logits=[[2.0, 0.3], [0.3, 0.1]]))
    [(1, 0)]
    """
    assert fit.logits_NK is not None
    assert test.logits_NK is not None
    fit_NK, test_NK = as_tensor(fit.logits_NK), as_tensor(test.logits_NK)
    ours, theirs = _hash_samples(fit_NK, fit.targets_N), _hash_samples(test_NK, test.targets_N)
    if np.array_equal(np.sort(ours), np.sort(theirs)):
        return list(zip(np.argsort(ours).tolist(), np.argsort(theirs).tolist(), strict=True))
    place_fit, repeated_fit = _unsaturated_rows(ours, fit_NK)
    place_test, repeated_test = _unsaturated_rows(theirs, test_NK)
    pairs = sorted((row, place_test[key]) for key, row in place_fit.items() if key in place_test)
    repeated = repeated_fit + repeated_test
    coincidences = 0.0
    if pairs and (repeated or _are_coarse(fit_NK, test_NK, SCORE_COLUMNS)):
        coincidences = 2 * repeated + COINCIDENCES * min(len(ours), len(theirs))
    return pairs if len(pairs) > coincidences else []


def count_near_copies(fit_NK: Tensor, fit_labels_N: Integers, test_NK: Tensor, test_labels_N: Integers) -> int:
    """Return how many test rows are fitting rows of another precision; 0 if chance explains the pairs.

    Rows are paired if the label and the three most likely classes are equal, and their probabilities nearly. Rows with
    fewer than three likely classes say too little and are left out. Independent rows of densities *f* and *g* are
    paired with probability ``∫ f·g ≤ √(∫ f² · ∫ g²)``, and pairs within the files estimate the two factors: this bounds
    the pairs by chance for files of any size and for coarse scores, such as votes.

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
    points = [_points(fit_NK, fit_labels_N), _points(test_NK, test_labels_N)]
    sizes = [len(each) for each in points]
    if min(sizes) < MIN_COPIES:
        return 0
    distinct = [np.unique(each, axis=0, return_counts=True) for each in points]  # equal rows make trees slow
    (fit, fit_counts), (test, test_counts) = distinct
    trees = KDTree(fit), KDTree(test)
    paired = [
        counts[tree.query(rows, p=np.inf, distance_upper_bound=TOLERANCE)[0] < TOLERANCE].sum()
        for rows, counts, tree in ((fit, fit_counts, trees[1]), (test, test_counts, trees[0]))
    ]
    copies = int(min(paired))
    if copies < max(MIN_COPIES, MIN_SHARE * min(sizes)):
        return 0
    rates = []
    for tree, (_, counts), size in zip(trees, distinct, sizes, strict=True):
        within = (tree.count_neighbors(tree, TOLERANCE, p=np.inf, weights=counts) - size) / 2
        rates.append((within + PRIOR_PAIRS) / (size * (size - 1) / 2))
    pairs = trees[0].count_neighbors(trees[1], TOLERANCE, p=np.inf, weights=(fit_counts, test_counts))
    return copies if pairs > TIMES_CHANCE * sizes[0] * sizes[1] * np.sqrt(rates[0] * rates[1]) else 0


def rows_in(features_ND: Tensor, train_MD: Tensor) -> tuple[Integers, Integers]:
    """Return rows of features that are training rows, exactly or in half precision, and these training rows.

    Both are empty if chance explains the pairs, as with features of few different values. Features that repeat among
    the samples, or more often than most in the training rows, say nothing about identity and are left out: rows of
    zeros, for example.

    >>> train = torch.randn(50, 4, generator=torch.Generator().manual_seed(0))
    >>> rows_in(torch.cat([train[7:9].half().float(), -train[:1]]), train)
    (array([0, 1]), array([7, 8]))
    """
    found_N, found_M = np.zeros(len(features_ND), dtype=bool), np.zeros(len(train_MD), dtype=bool)
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        ours_ND, theirs_MD = features_ND.to(dtype), train_MD.to(dtype)
        ours, theirs = _hash_rows(ours_ND), _hash_rows(theirs_MD)
        _, place, counts = np.unique(ours, return_inverse=True, return_counts=True)
        values, trained = np.unique(theirs, return_counts=True)
        equal_N = (counts[place] == 1) & np.isin(ours, values[trained <= np.median(trained)])
        coincidences = 2.0 * (len(ours) - len(counts))
        if equal_N.any() and _are_coarse(ours_ND, theirs_MD, FEATURE_COLUMNS):
            coincidences += 2 * (len(theirs) - len(values)) + COINCIDENCES * min(len(ours), len(theirs))
        if equal_N.sum() > coincidences:
            found_N |= equal_N
            found_M |= np.isin(theirs, ours[equal_N])
    return np.flatnonzero(found_N), np.flatnonzero(found_M)


def _points(scores_NK: Tensor, labels_N: Integers) -> Floats:
    """The three highest probabilities, and whole numbers that are equal if label and classes are."""
    top = scores_NK.float().softmax(dim=1).topk(3, dim=1)
    codes_N4 = torch.cat([torch.from_numpy(labels_N)[:, None], top.indices], dim=1)
    undecided_N = top.values[:, 2] > UNDECIDED
    return torch.cat([top.values, codes_N4], dim=1)[undecided_N].double().numpy()


def _hash_samples(scores_NK: Tensor, targets_N: Integers) -> Integers:
    """64-bit hash of each row and its label; log-probabilities are compared as float32."""
    labels_N = targets_N.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return (_hash_rows(scores_NK).view(np.uint64) + labels_N).view(np.int64)


def _hash_rows(values_NK: Tensor) -> Integers:
    """64-bit hash of the bits of each row as float32, where zero has one sign."""
    bits_NK = (values_NK.float() + 0.0).contiguous().view(torch.int32).numpy().astype(np.uint64)
    rng = np.random.default_rng(0)
    factors_K = rng.integers(1, 2**63, bits_NK.shape[1], dtype=np.uint64) | np.uint64(1)
    return (bits_NK * factors_K).sum(axis=1, dtype=np.uint64).view(np.int64)


def _are_coarse(mine_NK: Tensor, theirs_MK: Tensor, columns: int) -> bool:
    """Whether different samples may have equal rows: few columns in half precision, or rounded values.

    The probability of equal rows is estimated as a product over columns. One column is left out, because probabilities
    sum to 1.
    """
    equal_C = []
    parts = [each[:: -(-len(each) // SAMPLED), :columns] for each in (mine_NK, theirs_MK)]
    for values_N in torch.cat(parts).T:
        _, counts = values_N.unique(return_counts=True)
        equal_C.append(float((counts.double() * (counts - 1)).sum()) / max(len(values_N), 1) ** 2)
    expected_pairs = len(mine_NK) * len(theirs_MK) * float(np.prod(sorted(equal_C)[1:]))
    return expected_pairs > UNLIKELY


def _unsaturated_rows(hashes_N: Integers, scores_NK: Tensor) -> tuple[dict[int, int], int]:
    """Hash → row for hashes that occur once, and the number of repeated rows; saturated rows are left out."""
    top_N2 = scores_NK.topk(2, dim=1).values.float()
    kept = np.flatnonzero((top_N2[:, 0] - top_N2[:, 1] < SATURATED).numpy())
    values, first, counts = np.unique(hashes_N[kept], return_index=True, return_counts=True)
    once = counts == 1
    return dict(zip(values[once].tolist(), kept[first[once]].tolist(), strict=True)), len(kept) - len(values)
