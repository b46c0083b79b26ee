"""Distances between class means, and agreement of predictions with the nearest class mean."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from classgap.audit._types import Floats, Integers
from classgap.audit.io.rows import Matrix, highest_columns, read_rows, row_chunks

NEIGHBORS = 3
# Multiplications spent on comparing samples with class means; beyond this, a random subset of the samples is used.
AGREEMENT_BUDGET = 20_000_000_000
LARGE_AGREEMENT_BUDGET = 5_000_000_000  # for features of more than LARGE entries
LARGE = 2**27
# ‖a‖² + ‖b‖² - 2ab has the rounding error of ‖a‖² + ‖b‖². Below this fraction of that sum, the square is computed from
# the difference itself, so that float32 keeps three digits of each distance.
CANCELLATION = 1e-3


def pairwise_distances(a_MD: Tensor, b_KD: Tensor) -> Tensor:
    """Euclidean distances ‖a_i - b_j‖ of all pairs, (M, K).

    >>> pairwise_distances(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[5.0, 0.0]]
    """
    sums_MK = a_MD.square().sum(dim=1)[:, None] + b_KD.square().sum(dim=1)
    squares_MK = sums_MK - 2 * a_MD @ b_KD.T
    i, j = (squares_MK <= CANCELLATION * sums_MK).nonzero(as_tuple=True)
    for start in range(0, len(i), 4096):  # few pairs, unless the rows are nearly equal
        part = slice(start, start + 4096)
        squares_MK[i[part], j[part]] = (a_MD[i[part]] - b_KD[j[part]]).square().sum(dim=1)
    return squares_MK.clamp_(min=0).sqrt_()


def nearest_centroids(centroids_KD: Tensor, seen_U: Integers, neighbors: int = NEIGHBORS) -> tuple[Integers, Floats]:
    """Return the classes with the nearest means to each class and their distances, (K, neighbors), nearest first.

    Entries of unseen classes, and those beyond the number of other seen classes, are -1 and NaN.

    >>> classes, distances = nearest_centroids(torch.tensor([[0.0], [1.0], [9.0]]), np.array([0, 1, 2]), neighbors=1)
    >>> classes.tolist(), distances.tolist()
    ([[1], [0], [1]], [[1.0], [1.0], [8.0]])
    """
    nearest_Km = np.full((len(centroids_KD), neighbors), -1)
    distance_Km = np.full((len(centroids_KD), neighbors), np.nan)
    found = min(neighbors, len(seen_U) - 1)
    if found < 1:
        return nearest_Km, distance_Km
    seen = torch.from_numpy(seen_U)
    means_UD = centroids_KD[seen]
    means_UD = means_UD - means_UD.mean(dim=0)
    for rows in row_chunks(len(means_UD), len(means_UD)):
        between = pairwise_distances(means_UD[rows], means_UD)
        own = torch.arange(rows.start, rows.stop)
        between[torch.arange(len(own)), own] = torch.inf
        classes = between.topk(found, dim=1, largest=False).indices
        nearest_Km[seen_U[rows], :found] = seen_U[classes.numpy()]
        for place in range(found):  # reported distances are exact, from the differences
            apart_UD = means_UD[rows] - means_UD[classes[:, place]]
            distance_Km[seen_U[rows], place] = torch.linalg.vector_norm(apart_UD, dim=1).double().numpy()
    return nearest_Km, distance_Km


def centroid_agreement(
    features_ND: Matrix, centroids_KD: Tensor, seen_U: Integers, predictions_N: Integers, rng: np.random.Generator
) -> float:
    """Fraction of samples whose nearest class mean is that of the predicted class.

    >>> features, means = torch.tensor([[0.1], [0.9]]), torch.tensor([[0.0], [1.0]])
    >>> centroid_agreement(features, means, np.array([0, 1]), np.array([0, 0]), np.random.default_rng(0))
    0.5
    """
    means_UD = centroids_KD[torch.from_numpy(seen_U)]
    center_D = means_UD.mean(dim=0)
    means_UD = means_UD - center_D
    large = features_ND.shape[0] * features_ND.shape[1] > LARGE
    affordable = max(1, (LARGE_AGREEMENT_BUDGET if large else AGREEMENT_BUDGET) // means_UD.numel())
    samples = np.arange(len(features_ND))
    if affordable < len(samples):
        samples = np.sort(rng.choice(samples, affordable, replace=False))
    half_squares_U = means_UD.square().sum(dim=1) / 2
    agree = 0
    for rows in row_chunks(len(samples), features_ND.shape[1] + len(seen_U)):
        features_BD = read_rows(features_ND, samples[rows]).to(means_UD.dtype) - center_D
        # The nearest mean maximizes f·μ - ‖μ‖²/2.
        nearest_B = highest_columns(features_BD @ means_UD.T - half_squares_U)
        agree += int((seen_U[nearest_B] == predictions_N[samples[rows]]).sum())
    return agree / len(samples)
