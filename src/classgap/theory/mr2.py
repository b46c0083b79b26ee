"""Generalization bounds of MR² (Zhu et al., ICLR 2026), Eq. (3), (8), (9), (11), (13) and (15).

See ``rademacher`` for the complexity and ``trainable_margins`` for Discussion 1.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from classgap.functional import group_by_class, margin_cross_entropy
from classgap.theory.arguments import check_labels, check_matrix, check_nonnegative, check_vector
from classgap.theory.class_moments import class_moments, class_sizes
from classgap.theory.hard_pull import hard_pull
from classgap.theory.rademacher import (
    OptimalMargins,
    RademacherEstimate,
    complexity_fractions,
    head_norm,
    norm_constant,
    optimal_margins,
    rademacher_bound,
    rademacher_complexity,
)
from classgap.theory.risk_bound import RiskBound, low_order_term, ramp_loss
from classgap.theory.trainable_margins import margin_slopes, trained_margins

__all__ = [
    "OptimalMargins",
    "RademacherEstimate",
    "class_bounds",
    "complexity_fractions",
    "cross_entropy_risk",
    "generalization_bound",
    "hard_representation_loss",
    "head_norm",
    "margin_bound",
    "margin_risk",
    "margin_slopes",
    "norm_constant",
    "optimal_margins",
    "rademacher_bound",
    "rademacher_complexity",
    "score_margin",
    "trained_margins",
]


def hard_representation_loss(features_ND: Tensor, labels_N: Tensor, num_classes: int) -> Tensor:
    """max[0, max_{x⁺} (‖φ(x) - φ(x⁺)‖² - 2s̄)] of each sample, Eq. (3), with s̄ the mean of ‖ŝ_k‖² over the classes.

    The loss of Eq. (2) is a smooth upper bound, larger by at most ln N_y (see ``hard_pull``). NaN for samples without
    a class.

    >>> features, labels = torch.tensor([[0.0], [2.0], [5.0], [9.0]]), torch.tensor([0, 0, 1, 1])
    >>> hard_representation_loss(features, labels, num_classes=2)  # ‖ŝ‖² = 1 and 4, so 2s̄ = 5
    tensor([ 0.,  0., 11., 11.])
    """
    moments = class_moments(features_ND, labels_N, num_classes)
    average = moments.deviation_K.sum() / (moments.counts_K > 0).sum()
    return hard_pull(features_ND, labels_N, (2 * average).expand(num_classes))


def score_margin(logits_NK: Tensor, labels_N: Tensor) -> Tensor:
    """γ_f(x, y) = z_y - max_{y'≠y} z_{y'} of each sample, Eq. (8); infinite for a single class.

    >>> score_margin(torch.tensor([[3.0, 1.0], [3.0, 1.0]]), torch.tensor([0, 1]))
    tensor([ 2., -2.])
    """
    own_N1 = logits_NK.gather(1, labels_N[:, None])
    others_NK = logits_NK.scatter(1, labels_N[:, None], -torch.inf)
    return own_N1.squeeze(1) - others_NK.amax(dim=1)


def margin_risk(logits_NK: Tensor, labels_N: Tensor, gamma_K: Tensor) -> Tensor:
    """Empirical γ-margin risk of Lemma 1, the mean of Φ_{γ_y}(γ_f(x, y)), Eq. (9).

    >>> margin_risk(torch.tensor([[3.0, 1.0]]), torch.tensor([0]), torch.tensor([4.0, 1.0]))
    tensor(0.5000)
    """
    logits_NK, labels_N, gamma_K = _select_labeled(logits_NK, labels_N, gamma_K)
    return ramp_loss(score_margin(logits_NK, labels_N), gamma_K[labels_N]).mean()


def cross_entropy_risk(logits_NK: Tensor, labels_N: Tensor, gamma_K: Tensor) -> Tensor:
    """Mean γ-margin cross-entropy. By Lemma 3 the γ-margin risk is at most this divided by ln 2.

    >>> cross_entropy_risk(torch.zeros(1, 2), torch.tensor([0]), torch.ones(2)) / math.log(2)
    tensor(1.)
    """
    logits_NK, labels_N, gamma_K = _select_labeled(logits_NK, labels_N, gamma_K)
    return margin_cross_entropy(logits_NK, labels_N, gamma_K[labels_N]).mean()


def margin_bound(
    logits_NK: Tensor, labels_N: Tensor, gamma_K: Tensor, *, complexity: Tensor | float, delta: float = 0.05
) -> RiskBound:
    """Lemma 1, Eq. (11): with probability 1 - δ, the error rate is at most

        R̂^γ  +  4√(2K) R̂_D^γ(F)  +  3 √(ln(2/δ) / 2N)

    with the γ-margin risk of :func:`margin_risk`, for any set F of scores. :func:`generalization_bound` continues from
    here: it replaces the risk by cross-entropy (Lemma 3) and the complexity by its bound (Lemma 2).

    Args:
        logits_NK: Logits z.
        labels_N: Class of each row, or -1 to ignore it.
        gamma_K: Margins γ, fixed before the sample was drawn.
        complexity: R̂_D^γ(F), from ``rademacher_complexity`` or a bound on it.
        delta: Probability δ that the bound fails.

    >>> z, y = torch.tensor([[4.0, 0.0], [0.0, 1.0]]).repeat(500, 1), torch.tensor([0, 1]).repeat(500)
    >>> margin_bound(z, y, torch.tensor([2.0, 2.0]), complexity=0.01)
    RiskBound(risk=tensor(0.2500), complexity=tensor(0.0800), low_order=tensor(0.1288))
    """
    risk = margin_risk(logits_NK, labels_N, gamma_K)
    return RiskBound(
        risk=risk,
        complexity=4 * math.sqrt(2 * len(gamma_K)) * torch.as_tensor(complexity).to(risk),
        low_order=low_order_term((labels_N >= 0).sum(), delta),
    )


def generalization_bound(
    logits_NK: Tensor,
    features_ND: Tensor,
    labels_N: Tensor,
    gamma_K: Tensor,
    weight_KD: Tensor,
    bias_K: Tensor | None = None,
    *,
    p: float = 2.0,
    delta: float = 0.05,
) -> RiskBound:
    """Proposition 1, Eq. (13): with probability 1 - δ, the error rate is at most

        R^{γ,ce} / ln 2  +  4√(2K) · C(p) Λ_q (K/N) √(Σ_k N_k r_{k,p}² / γ_k²)  +  3 √(ln(2/δ) / 2N).

    For p = 2 and classes of equal size the middle term is the printed 4√2 ΛK/√N √(Σ_k r_k² / γ_k²). The last term,
    printed as O(1/√N), is that of Lemma 1. Lemma 1 holds for γ chosen beforehand; γ computed from the sample add ln ln
    terms, which the paper mentions but does not state. Its factor 4√(2K) is larger than necessary: Eq. (36) to (38)
    bound a maximum by √K times a Euclidean norm that is already at least the maximum.

    Args:
        logits_NK: Logits z = Wφ + b.
        features_ND: Features φ.
        labels_N: Class of each row, or -1 to ignore it.
        gamma_K: Margins γ.
        weight_KD: Weights W, from which the norm bound Λ_q is computed.
        bias_K: Biases b, if the head has any; they count as weights on an additional feature that is always 1.
        p: Order of the feature norm.
        delta: Probability δ that the bound fails.

    >>> f, y = torch.tensor([[1.0], [-1.0]]).repeat(5000, 1), torch.tensor([0, 1]).repeat(5000)
    >>> W = torch.tensor([[1.0], [-1.0]])
    >>> generalization_bound(f @ W.T, f, y, torch.ones(2), W)
    RiskBound(risk=tensor(0.1831), complexity=tensor(0.1600), low_order=tensor(0.0407))
    """
    features_ND = check_matrix("features_ND", features_ND)
    weight_KD = check_matrix("weight_KD", weight_KD, columns=features_ND.shape[1])
    classes = len(weight_KD)
    gamma_K = check_vector("gamma_K", gamma_K, classes, positive=True).to(features_ND)
    with_bias = bias_K is not None
    size_K, counts_K = class_sizes(features_ND, labels_N, classes, p=p, with_bias=with_bias)
    complexity = rademacher_bound(
        size_K,
        counts_K,
        gamma_K,
        weight_norm=head_norm(weight_KD, bias_K, p=p),
        constant=norm_constant(p, features_ND.shape[1] + with_bias),
    )
    return RiskBound(
        risk=cross_entropy_risk(logits_NK, labels_N, gamma_K) / math.log(2),  # Lemma 3
        complexity=4 * math.sqrt(2 * classes) * complexity,  # Lemma 1, Eq. (11)
        low_order=low_order_term(counts_K.sum(), delta),
    )


def class_bounds(
    logits_NK: Tensor,
    features_ND: Tensor,
    labels_N: Tensor,
    gamma_K: Tensor,
    weight_KD: Tensor,
    bias_K: Tensor | None = None,
    *,
    p: float = 2.0,
    delta: float = 0.05,
    factor: float | None = None,
) -> RiskBound:
    """Eq. (15), the error rate of each class; with probability 1 - δ for each class by itself it is at most

        R_k^{γ,ce} / ln 2  +  (factor / γ_k) · C(p) Λ_q r_{k,p} / √N_k  +  3 √(ln(2/δ) / 2N_k).

    Use δ/K for all classes together. Differences from the printed formula:

    - the complexity is that of Eq. (95); the line after it loses 1/√N_k;
    - ε(δ, N) must be the low-order term of the class, with N_k samples;
    - appendix B.8 bounds the complexity of one score, not the error, and the printed factor 4 holds for two classes
      only. The margin subtracts a maximum over K - 1 scores, whose complexity is at most the sum of theirs, so the
      factor is 2K. With many more classes than samples 4 is too small.

    The terms are vectors of K entries; NaN for a class without samples.

    Args:
        logits_NK: Logits z = Wφ + b.
        features_ND: Features φ.
        labels_N: Class of each row, or -1 to ignore it.
        gamma_K: Margins γ.
        weight_KD: Weights W, from which the norm bound Λ_q is computed.
        bias_K: Biases b, if the head has any.
        p: Order of the feature norm.
        delta: Probability δ that the bound of a class fails.
        factor: Factor of R̂_k/γ_k: 2K by default; 4 as printed.

    >>> f, y = torch.tensor([[1.0], [-1.0]]).repeat(5000, 1), torch.tensor([0, 1]).repeat(5000)
    >>> W = torch.tensor([[5.0], [-5.0]])
    >>> class_bounds(f @ W.T, f, y, torch.tensor([1.0, 0.5]), W).complexity
    tensor([0.2828, 0.5657])
    """
    features_ND = check_matrix("features_ND", features_ND)
    weight_KD = check_matrix("weight_KD", weight_KD, columns=features_ND.shape[1])
    classes = len(weight_KD)
    gamma_K = check_vector("gamma_K", gamma_K, classes, positive=True).to(features_ND)
    with_bias = bias_K is not None
    factor = 2.0 * classes if factor is None else check_nonnegative("factor", factor)
    size_K, counts_K = class_sizes(features_ND, labels_N, classes, p=p, with_bias=with_bias)
    constant = norm_constant(p, features_ND.shape[1] + with_bias)
    complexity_K = constant * head_norm(weight_KD, bias_K, p=p) * (size_K / counts_K).sqrt()  # Eq. (95)
    return RiskBound(
        risk=_class_cross_entropy(logits_NK, labels_N, gamma_K) / math.log(2),
        complexity=factor / gamma_K * complexity_K,
        low_order=torch.where(counts_K > 0, low_order_term(counts_K, delta), torch.nan),
    )


def _class_cross_entropy(logits_NK: Tensor, labels_N: Tensor, gamma_K: Tensor) -> Tensor:
    logits_NK, labels_N, gamma_K = _select_labeled(logits_NK, labels_N, gamma_K)
    groups = group_by_class(labels_N, len(gamma_K))
    loss_U = groups.mean(margin_cross_entropy(logits_NK, labels_N, gamma_K[labels_N]))
    return torch.full_like(gamma_K, torch.nan).index_copy(0, groups.classes_U, loss_U)


def _select_labeled(logits_NK: Tensor, labels_N: Tensor, gamma_K: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Check the inputs and select the rows that have a class, with γ in the dtype of the logits."""
    logits_NK = check_matrix("logits_NK", logits_NK, columns=len(gamma_K))
    gamma_K = check_vector("gamma_K", gamma_K, len(gamma_K), positive=True).to(logits_NK)
    labels_N = check_labels(labels_N, len(gamma_K), rows=len(logits_NK))
    if bool((labels_N < 0).any()):
        logits_NK, labels_N = logits_NK[labels_N >= 0], labels_N[labels_N >= 0]
    return logits_NK, labels_N, gamma_K
