"""What training would do to the margins γ of MR² (Zhu et al., ICLR 2026): appendix A, Discussion 1."""

from __future__ import annotations

import torch
from torch import Tensor

from classgap.theory.arguments import check_labels, check_matrix, check_vector

STEPS = 120  # halvings of the interval of 1/γ; float64 is exhausted before


def margin_slopes(logits_NK: Tensor, labels_N: Tensor, gamma_K: Tensor) -> Tensor:
    """dℓ/dγ_y = (z_y - Σ_k p_k z_k) / γ_y² of each sample, p = softmax(z/γ_y): the slope of the loss of Eq. (1).

    Discussion 1 states that the loss is "monotonically increasing in γ", so that a trainable γ would shrink. That holds
    for samples whose true logit exceeds the mean z̄ = Σ_k p_k z_k of all logits, and thus for every correctly
    classified one. For a sample that is misclassified by a wide margin the slope is negative: a larger γ lowers its
    loss. 0 for samples without a class.

    >>> margin_slopes(torch.tensor([[2.0, 0.0], [2.0, 0.0]]), torch.tensor([0, 1]), torch.ones(2))
    tensor([ 0.2384, -1.7616])
    """
    logits_NK, labels_N, gamma_K = _inputs(logits_NK, labels_N, gamma_K)
    gamma_N = gamma_K[labels_N.clamp(min=0)]
    slope_N = _lead(logits_NK, labels_N, 1 / gamma_N) / gamma_N.square()
    return torch.where(labels_N >= 0, slope_N, 0)


def trained_margins(logits_NK: Tensor, labels_N: Tensor, num_classes: int) -> Tensor:
    """Margins γ_k = argmin of the mean loss ℓ_{γ,ce} of each class: where gradient descent on γ ends for fixed logits.

    In t = 1/γ the loss of a class is convex, so its minimum is unique unless the loss is constant:

    - γ_k = 0 if every sample of the class is classified correctly. This is what Discussion 1 describes;
    - γ_k = ∞ if the logits of the true class are, on average, not above the mean of all logits;
    - a number between them in all other cases, in particular for most classes with a few errors. It is the temperature
      that calibrates the class on this sample (Guo et al., 2017), and is larger for classes with more errors.

    Discussion 1 does not mention the last two. NaN for a class without samples, and where all its logits are equal.

    Args:
        logits_NK: Logits z.
        labels_N: Class of each row, or -1 to ignore it.
        num_classes: Number of classes K.

    >>> z = torch.tensor([[2.0, 0.0], [2.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    >>> trained_margins(z, torch.tensor([0, 0, 1, 1]), num_classes=2)
    tensor([0., inf])
    >>> trained_margins(z, torch.tensor([0, 0, 0, 0]), num_classes=2)  # right in three of four: 2 / ln 3
    tensor([1.8205,    nan])
    """
    logits_NK, labels_N, ones_K = _inputs(logits_NK, labels_N, torch.ones(num_classes))
    logits_NK = logits_NK[labels_N >= 0].double()
    labels_N = labels_N[labels_N >= 0]
    counts_K = labels_N.bincount(minlength=num_classes)

    def mean_lead(inverse_K: Tensor) -> Tensor:
        """Return -dℓ/dt of each class, which falls in t."""
        lead_N = _lead(logits_NK, labels_N, inverse_K[labels_N])
        return torch.zeros_like(inverse_K).index_add(0, labels_N, lead_N) / counts_K

    own_N = logits_NK.gather(1, labels_N[:, None])
    lowest_N = (own_N - logits_NK.scatter(1, labels_N[:, None], -torch.inf)).amin(dim=1)
    worst_K = lowest_N.new_full((num_classes,), torch.inf).scatter_reduce(0, labels_N, lowest_N, "amin")
    start_K = mean_lead(lowest_N.new_zeros(num_classes))
    # Upper end of 1/γ: a lead u > 0 adds at most u e^{-tu} ≤ 1/t for each of N samples and K classes, and a sample that
    # is wrong by m adds at most -m/K.
    low_K = torch.zeros_like(start_K)
    high_K = torch.where(worst_K < 0, len(labels_N) * num_classes**2 / worst_K.abs(), 1.0)
    for _ in range(STEPS):
        middle_K = (low_K + high_K) / 2
        rising_K = mean_lead(middle_K) > 0
        low_K, high_K = torch.where(rising_K, middle_K, low_K), torch.where(rising_K, high_K, middle_K)
    gamma_K = 1 / ((low_K + high_K) / 2)
    gamma_K = torch.where(worst_K >= 0, 0.0, gamma_K)
    gamma_K = torch.where(start_K <= 0, torch.inf, gamma_K)
    flat_K = (start_K == 0) & (worst_K >= 0)
    return torch.where((counts_K == 0) | flat_K, torch.nan, gamma_K).to(ones_K)


def _lead(logits_NK: Tensor, labels_N: Tensor, inverse_N: Tensor) -> Tensor:
    """z_y - Σ_k p_k z_k with p = softmax(z/γ_y)."""
    own_N1 = logits_NK.gather(1, labels_N.clamp(min=0)[:, None])
    # Relative to the true logit, the mean is exact where p is nearly 1 for the true class.
    return (torch.softmax(logits_NK * inverse_N[:, None], dim=1) * (own_N1 - logits_NK)).sum(dim=1)


def _inputs(logits_NK: Tensor, labels_N: Tensor, gamma_K: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    gamma_K = check_vector("gamma_K", gamma_K, len(gamma_K), positive=True)
    logits_NK = check_matrix("logits_NK", logits_NK, columns=len(gamma_K))
    return logits_NK, check_labels(labels_N, len(gamma_K), rows=len(logits_NK)), gamma_K.to(logits_NK)
