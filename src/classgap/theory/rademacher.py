"""The complexity term of MR² (Zhu et al., ICLR 2026): Definition 2, Lemma 2, Proposition 2 and Corollary 1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from classgap.functional import class_margins
from classgap.theory.arguments import check_labels, check_matrix, check_positive, check_vector

BLOCK_ELEMENTS = 2**24  # signs in memory at once


def head_norm(weight_KD: Tensor, bias_K: Tensor | None = None, *, p: float = 2.0) -> Tensor:
    """Λ_q, the largest ‖w_y‖_q over the classes, with 1/p + 1/q = 1; a bias counts as an additional weight.

    >>> head_norm(torch.tensor([[3.0, 4.0], [1.0, 0.0]]), p=float("inf"))  # q = 1
    tensor(7.)
    """
    weight_KD = check_matrix("weight_KD", weight_KD)
    if bias_K is not None:
        bias_K = check_vector("bias_K", bias_K, len(weight_KD)).to(weight_KD)
        weight_KD = torch.cat([weight_KD, bias_K[:, None]], dim=1)
    dual = 1.0 if math.isinf(p) else math.inf if p == 1 else p / (p - 1)
    return torch.linalg.vector_norm(weight_KD, ord=dual, dim=1).amax()


def norm_constant(p: float, dim: int, *, printed: bool = False) -> float:
    """C(p) of Proposition 2, Eq. (16): E‖Σ ε_i v_i‖_p ≤ C(p) √(Σ ‖v_i‖_p²) for vectors of d entries; C(2) = 1.

                        printed in Eq. (73) and (86)        computed
        1 ≤ p < 2       1                                   d^{1/p - 1/2}
        2 < p < ∞       2^{p/2} Γ((p+1)/2) / √π             its p-th root
        p = ∞           √(2 ln d)                           √(2 ln 2d)

    - p < 2: C = 1 is wrong. For the d unit vectors and p = 1 the left side is d and the root is √d. Eq. (84) equates
      Σ_j σ_j² with the sum of r_{k,p}², but it is the sum of r_{k,2}². The computed constant follows from ‖u‖_p ≤
      d^{1/p - 1/2} ‖u‖_2 and is attained in this example.
    - p > 2: the printed value is Haagerup's constant for E|u|^p; Eq. (84) omits a p-th root. The value is above 1, so
      the printed bound holds, but is loose. With the root it follows from Minkowski's inequality.
    - p = ∞: Eq. (82) is a maximum over 2d variables. For d = 1 the printed constant is 0, which is wrong.

    Args:
        p: Order of the norm, from 1 to infinity.
        dim: Number of features d.
        printed: Whether to return C(p) of Eq. (73), for comparison with the paper.

    >>> round(norm_constant(3, dim=64), 3), round(norm_constant(3, dim=64, printed=True), 3)
    (1.169, 1.596)
    """
    if not p >= 1:
        raise ValueError(f"p must be a number >= 1 or float('inf'), got {p!r}.")
    if dim < 1:
        raise ValueError(f"dim must be >= 1, got {dim!r}.")
    if math.isinf(p):
        return math.sqrt(2 * math.log(dim if printed else 2 * dim))
    if p <= 2:
        return 1.0 if printed else dim ** (1 / p - 1 / 2)
    log_moment = p / 2 * math.log(2) + math.lgamma((p + 1) / 2) - math.log(math.pi) / 2
    return math.exp(log_moment if printed else log_moment / p)


@dataclass(frozen=True)
class RademacherEstimate:
    """A complexity estimated from random signs, and the standard error of the estimate."""

    value: Tensor
    standard_error: Tensor


def rademacher_complexity(
    features_ND: Tensor,
    labels_N: Tensor,
    gamma_K: Tensor,
    *,
    weight_norm: Tensor | float,
    p: float = 2.0,
    draws: int = 256,
    generator: torch.Generator | None = None,
) -> RademacherEstimate:
    """The empirical γ-margin Rademacher complexity of linear heads, Definition 2, by Monte Carlo.

    Eq. (10) takes the supremum over heads with ‖w_y‖_q ≤ Λ, which is attained class by class: it is Λ times a p-norm,
    the same on average for each of the K classes. With independent signs ε_i = ±1,

        R̂ = K Λ / N · E‖Σ_i ε_i φ_i / γ_{y_i}‖_p.

    Lemma 2 and Proposition 2 bound it from above (:func:`rademacher_bound`); for p = 2 it is at least 1/√2 of the
    bound by Khintchine's inequality.

    Args:
        features_ND: Features φ.
        labels_N: Class of each row, or -1 to ignore it.
        gamma_K: Margins γ.
        weight_norm: Λ_q, from ``head_norm``.
        p: Order of the feature norm.
        draws: Number of random draws of all signs, at least 2.
        generator: Source of the signs; by default a new one with seed 0, so that calls agree.

    >>> estimate = rademacher_complexity(torch.eye(4), torch.tensor([0, 0, 1, 1]), torch.ones(2), weight_norm=1.0)
    >>> estimate.value, estimate.standard_error  # 2/4 ‖(±1, ±1, ±1, ±1)‖ for any signs; the bound is 1, too
    (tensor(1.), tensor(0.))
    """
    if draws < 2:
        raise ValueError(f"draws must be >= 2, got {draws!r}.")
    features_ND = check_matrix("features_ND", features_ND)
    gamma_K = check_vector("gamma_K", gamma_K, len(gamma_K), positive=True).to(features_ND)
    labels_N = check_labels(labels_N, len(gamma_K), rows=len(features_ND))
    features_ND, labels_N = features_ND[labels_N >= 0], labels_N[labels_N >= 0]
    scaled_ND = features_ND / gamma_K[labels_N, None]
    generator = generator or torch.Generator(features_ND.device).manual_seed(0)
    block = max(1, BLOCK_ELEMENTS // len(scaled_ND))
    norms = []
    for start in range(0, draws, block):
        shape = min(block, draws - start), len(scaled_ND)
        signs_SN = torch.randint(2, shape, generator=generator, device=features_ND.device).to(scaled_ND) * 2 - 1
        norms.append(torch.linalg.vector_norm(signs_SN @ scaled_ND, ord=p, dim=1))
    norms_S = torch.cat(norms) * weight_norm * len(gamma_K) / len(scaled_ND)
    return RademacherEstimate(value=norms_S.mean(), standard_error=norms_S.std() / draws**0.5)


def rademacher_bound(
    size_K: Tensor, counts_K: Tensor, gamma_K: Tensor, *, weight_norm: Tensor | float, constant: float = 1.0
) -> Tensor:
    """C Λ (K/N) √(Σ_k N_k r_k² / γ_k²), the bound on the γ-margin Rademacher complexity: Lemma 2 and Proposition 2.

    Eq. (12), (41) and (51) print a root inside a root, which contradicts Eq. (50), the line before. The function
    computes Eq. (50), which does not need classes of equal size; for classes of N/K samples it is C Λ √(K/N) √(Σ_k r_k²
    / γ_k²), as in Eq. (13) and (16).

    Args:
        size_K: r_k² for the same p, from ``class_sizes``.
        counts_K: Number of samples N_k of each class.
        gamma_K: Margins γ_k.
        weight_norm: Λ_q, from ``head_norm``.
        constant: C(p), from ``norm_constant``; 1 for p = 2.

    >>> rademacher_bound(torch.tensor([8.0, 1.0]), torch.tensor([50, 50]), torch.ones(2), weight_norm=1.0)
    tensor(0.4243)
    """
    classes = len(size_K)
    size_K = check_vector("size_K", size_K, classes)
    counts_K = check_vector("counts_K", counts_K, classes).to(size_K)
    gamma_K = check_vector("gamma_K", gamma_K, classes, positive=True).to(size_K)
    spread = (counts_K * size_K / gamma_K.square()).sum().sqrt()
    return constant * weight_norm * classes / counts_K.sum() * spread


def complexity_fractions(size_K: Tensor, counts_K: Tensor, gamma_K: Tensor) -> Tensor:
    """Fraction of Σ_k N_k r_k² / γ_k² that is due to each class.

    The sum is under the root of :func:`rademacher_bound`, so this is each class's part of the squared complexity term.

    >>> complexity_fractions(torch.tensor([8.0, 2.0]), torch.tensor([50, 50]), torch.ones(2))
    tensor([0.8000, 0.2000])
    """
    size_K = check_vector("size_K", size_K, len(size_K))
    counts_K = check_vector("counts_K", counts_K, len(size_K)).to(size_K)
    gamma_K = check_vector("gamma_K", gamma_K, len(size_K), positive=True).to(size_K)
    parts_K = counts_K * size_K / gamma_K.square()
    return parts_K / parts_K.sum()


@dataclass(frozen=True)
class OptimalMargins:
    """The margins γ of Corollary 1, and Σ r_k² / γ_k² for them."""

    gamma_K: Tensor
    spread: Tensor


def optimal_margins(size_K: Tensor, *, mean: float = 1.0) -> OptimalMargins:
    """Margins γ of mean c̄ that minimize Σ_k r_k² / γ_k², Eq. (14) and (17), and the minimum (Σ_k r_k^{2/3})³ / (c̄K)².

    They are optimal for classes of equal size; otherwise N_k r_k² would replace r_k². In the proof, Eq. (69) takes the
    cube root of a sum instead of the sum of cube roots; Eq. (70) is correct. ``class_margins`` limits γ to at least
    c̄/100, so the minimum is not quite reached if r_k² of a class is less than a millionth of the others'.

    >>> optimal_margins(torch.tensor([8.0, 1.0]))
    OptimalMargins(gamma_K=tensor([1.3333, 0.6667]), spread=tensor(6.7500))
    """
    size_K = check_vector("size_K", size_K, len(size_K))
    mean = check_positive("mean", mean)
    spread = size_K.pow(1 / 3).sum().pow(3) / (mean * len(size_K)) ** 2
    return OptimalMargins(gamma_K=class_margins(size_K, mean=mean), spread=spread)
