"""Class quotas of data pruning, proportional to class errors."""

from __future__ import annotations

import torch
from torch import Tensor


def error_densities(counts_K: Tensor, errors_K: Tensor, density: float) -> Tensor:
    """Fraction of each class to keep, proportional to its error and at most 1: d_k = min(1, s e_k), Σ N_k d_k = d N.

    DRoP (Vysogorets et al. 2025), Algorithm 1, with e_k = 1 - recall. Classes that would exceed 1 are kept in full, and
    the excess is distributed over the others. Whatever classes with errors cannot take goes to classes without errors,
    in equal fractions.

    Args:
        counts_K: Samples N_k of each class, (K,).
        errors_K: Error e_k of each class, in [0, 1], (K,).
        density: Fraction d of all samples to keep, in (0, 1].

    Returns:
        Density of each class, float64, (K,).

    >>> error_densities(torch.tensor([100, 100, 100]), torch.tensor([0.1, 0.2, 0.6]), density=0.5)
    tensor([0.1667, 0.3333, 1.0000], dtype=torch.float64)
    """
    counts_K, errors_K = counts_K.double(), errors_K.double()
    density_K = torch.zeros_like(errors_K)
    open_K = counts_K > 0
    left = density * counts_K.sum()
    while bool(open_K.any()) and float(left) > 0:
        weight_K = torch.where(open_K, errors_K, 0)
        if not bool(weight_K.any()):  # no errors: equal fractions
            weight_K = open_K.double()
        # The scale at which these classes take all that is left; d_k grows along e_k from pass to pass.
        wanted_K = density_K + weight_K * left / (counts_K * weight_K).sum()
        density_K = wanted_K.clamp(max=1)
        left = (counts_K * (wanted_K - density_K)).sum()
        full_K = open_K & (wanted_K >= 1)
        open_K = open_K & ~full_K
        if not bool(full_K.any()):
            break
    return density_K


def error_quotas(counts_K: Tensor, errors_K: Tensor, density: float) -> Tensor:
    """Samples of each class to keep: :func:`error_densities` times N_k, rounded, at least 1 of each class with samples.

    Classes with an unknown error (NaN) get the mean error of the others.

    Args:
        counts_K: Samples N_k of each class, (K,).
        errors_K: Error e_k of each class, in [0, 1], or NaN, (K,).
        density: Fraction d of all samples to keep, in (0, 1].

    Returns:
        Quotas, int64, (K,).

    >>> error_quotas(torch.tensor([100, 100, 0]), torch.tensor([0.0, 0.2, 0.6]), density=0.5)
    tensor([  1, 100,   0])
    """
    errors_K = torch.where(errors_K.isnan(), errors_K.nanmean(), errors_K)
    wanted_K = counts_K * error_densities(counts_K, errors_K, density)
    return (wanted_K + 0.5).floor().clamp(min=1).minimum(counts_K.to(wanted_K.dtype)).long()
