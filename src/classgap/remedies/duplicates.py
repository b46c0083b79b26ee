"""Samples that two files share, exactly or in another precision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from classgap.audit._types import Floats, Integers
from classgap.audit.io.predictions import Predictions
from classgap.audit.io.rows import as_tensor

FEW, FEW_SHARE = 3, 0.01  # rows, or fraction of the smaller file
TIMES_CHANCE = 5  # pairs of equal rows per pair that chance explains
COMMON = 4  # rows with a value that occurs more often, such as rows of zeros, say nothing about identity
UNSEEN = 0.5  # added to the pairs within a file: none seen does not mean that none can occur
TOLERANCE = 1e-3  # of a probability; half precision and three decimals stay below
UNDECIDED = 0.02  # least third highest probability: nearly certain rows are alike for many samples
MIN_SHARE = 0.2  # of the undecided rows: fewer may be duplicates in the data
MIN_COPIES = 10
PRIOR_PAIRS = 3  # of nearly equal rows: the upper 95 % bound of a count of 0
SAMPLED = 5_000  # undecided rows to estimate rates of nearly equal rows from


@dataclass(frozen=True)
class SharedRows:
    """Rows of two files that are equal.

    Attributes:
        first_N: rows of the first file, sorted.
        second_M: rows of the second file, sorted.
        pair: one row of each file that are equal, or ``None`` without any.
        action: "keep" if rows that repeat within the files explain the pairs: scores are coarse, or the data has
            duplicates. "refuse" if there are many pairs, and more than could repeat unseen. Otherwise "leave out".
    """

    first_N: Integers
    second_M: Integers
    pair: tuple[int, int] | None
    action: Literal["keep", "leave out", "refuse"]


def shared_samples(fit: Sequence[Predictions], test: Sequence[Predictions]) -> SharedRows:
    """Find samples with identical scores of all models and identical labels in both files.

    >>> scores = [[0.1, 0.7], [2.0, 0.3], [1.5, 0.2]]
    >>> fit = Predictions.from_arrays([0, 1, 0], logits=scores)
    >>> shared_samples([fit], [Predictions.from_arrays([1, 0], logits=[[2.0, 0.3], [0.3, 0.1]])]).pair
    (1, 0)
    """
    ours, theirs = _hash_samples(fit), _hash_samples(test)
    order, other = np.argsort(ours, kind="stable"), np.argsort(theirs, kind="stable")
    if np.array_equal(ours[order], theirs[other]):  # of coarse scores, only whole files say enough
        distinct, classes = len(np.unique(ours)), fit[0].num_classes
        if distinct > 2 * classes or (distinct > classes and np.array_equal(ours, theirs)):
            pair = 0, int(np.flatnonzero(theirs == ours[0])[0])
            return SharedRows(np.sort(order), np.sort(other), pair, "refuse")
    return _shared_rows(ours, theirs, strict=True)


def rows_in(features_ND: Tensor, train_MD: Tensor) -> tuple[Integers, Integers]:
    """Return rows of features that are training rows, exactly or in half precision, and these training rows.

    Both are empty if rows that repeat explain the pairs, as with features of few different values.

    >>> train = torch.randn(50, 4, generator=torch.Generator().manual_seed(0))
    >>> rows_in(torch.cat([train[7:9].half().float(), -train[:1]]), train)
    (array([0, 1]), array([7, 8]))
    """
    found_N, found_M = np.zeros(len(features_ND), dtype=bool), np.zeros(len(train_MD), dtype=bool)
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        shared = _shared_rows(_hash_rows(features_ND.to(dtype)), _hash_rows(train_MD.to(dtype)), strict=False)
        if shared.action != "keep":
            found_N[shared.first_N] = True
            found_M[shared.second_M] = True
    return np.flatnonzero(found_N), np.flatnonzero(found_M)


def _shared_rows(first_N: Integers, second_M: Integers, *, strict: bool) -> SharedRows:
    """Compare rows by their hashes.

    Independent rows are equal with probability ``Σ pᵢqᵢ``, where *p* and *q* are the distributions of the two files;
    pairs within the files estimate ``Σ pᵢ²`` and ``Σ qᵢ²``. The geometric mean of the two is at least the probability;
    it is compared if ``strict``. Their minimum finds more, and takes more duplicates in the data for shared rows.
    """
    values, place = np.unique(np.concatenate([first_N, second_M]), return_inverse=True)
    places = place[: len(first_N)], place[len(first_N) :]
    counts = [np.bincount(each, minlength=len(values)).astype(np.float64) for each in places]
    counts = [np.where(counts[0] + counts[1] > COMMON, 0.0, each) for each in counts]
    common = (counts[0] > 0) & (counts[1] > 0)
    if not common.any():
        empty = np.array([], dtype=np.int64)
        return SharedRows(empty, empty, None, "keep")
    pairs = (counts[0] * counts[1]).sum()
    rows_N, rows_M = (np.flatnonzero(common[each]) for each in places)
    pair = int(rows_N[0]), int(np.flatnonzero(places[1] == places[0][rows_N[0]])[0])

    def is_more_than_chance(unseen: float) -> bool:
        rates = [
            ((each * (each - 1)).sum() / 2 + unseen) / max(size * (size - 1) / 2, 1)
            for each, size in zip(counts, (len(first_N), len(second_M)), strict=True)
        ]
        rate = np.sqrt(rates[0] * rates[1]) if strict else min(rates)
        return bool(pairs > TIMES_CHANCE * len(first_N) * len(second_M) * rate)

    if len(rows_N) <= max(FEW, FEW_SHARE * min(len(first_N), len(second_M))):
        return SharedRows(rows_N, rows_M, pair, "leave out")
    if is_more_than_chance(UNSEEN):
        return SharedRows(rows_N, rows_M, pair, "refuse")
    return SharedRows(rows_N, rows_M, pair, "leave out" if is_more_than_chance(0) else "keep")


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
    sampled = [each[:: -(-len(each) // SAMPLED)] for each in points]
    few = [KDTree(each) for each in sampled]
    rates = []
    for tree, rows in zip(few, sampled, strict=True):
        within = (tree.count_neighbors(tree, TOLERANCE, p=np.inf) - len(rows)) / 2
        rates.append((within + PRIOR_PAIRS) / (len(rows) * (len(rows) - 1) / 2))
    # The larger file is compared as a whole: subsets of both would share few of the copies.
    small, large = np.argsort(sizes)
    pairs = few[small].count_neighbors(trees[large], TOLERANCE, p=np.inf, weights=(None, distinct[large][1]))
    expected = len(sampled[small]) * sizes[large] * np.sqrt(rates[0] * rates[1])
    return copies if pairs > TIMES_CHANCE * expected else 0


def _points(scores_NK: Tensor, labels_N: Integers) -> Floats:
    """The three highest probabilities, and whole numbers that are equal if label and classes are."""
    top = scores_NK.float().softmax(dim=1).topk(3, dim=1)
    codes_N4 = torch.cat([torch.from_numpy(labels_N)[:, None], top.indices], dim=1)
    undecided_N = top.values[:, 2] > UNDECIDED
    return torch.cat([top.values, codes_N4], dim=1)[undecided_N].double().numpy()


def _hash_samples(models: Sequence[Predictions]) -> Integers:
    """64-bit hash of the label of each sample and its scores of all models, as float32."""
    hashes_N = models[0].targets_N.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for place, model in enumerate(models):
        assert model.logits_NK is not None
        hashes_N += _hash_rows(as_tensor(model.logits_NK), seed=place).view(np.uint64)
    return hashes_N.view(np.int64)


def _hash_rows(values_NK: Tensor, seed: int = 0) -> Integers:
    """64-bit hash of the bits of each row as float32, where zero has one sign."""
    bits_NK = (values_NK.float() + 0.0).contiguous().view(torch.int32).numpy().astype(np.uint64)
    rng = np.random.default_rng(seed)
    factors_K = rng.integers(1, 2**63, bits_NK.shape[1], dtype=np.uint64) | np.uint64(1)
    return (bits_NK * factors_K).sum(axis=1, dtype=np.uint64).view(np.int64)
