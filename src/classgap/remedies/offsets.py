"""Class offsets and class-wise temperatures that minimize a class-weighted cross-entropy, with shrinkage."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from classgap._threads import single_blas_thread, single_thread
from classgap.audit._types import Floats
from classgap.audit.diagnosis.counterfactuals import TopScores

# Samples per class that pull offsets to 0 and temperatures to 1; chosen on 20news, CIFAR-10 and CLINC150 predictions.
OFFSET_SHRINKAGE = 3.0
SCALE_SHRINKAGE = 20.0
MIN_PARALLEL = 1_000_000  # scores from which several threads pay


def fit_class_offsets(scores: TopScores, weight_K: Tensor, *, shrinkage: float = OFFSET_SHRINKAGE) -> Tensor:
    """Return the offsets δ with the lowest class-weighted cross-entropy of z + δ.

    Minimizes Σ_i w_i CE(z_i + δ, y_i) + (λ/2) Σ_k δ_k², with w_i = weight_{y_i} / n_{y_i} and λ = ``shrinkage`` divided
    by the median number of samples per class. The objective is convex.

    Args:
        scores: calibrated scores and labels.
        weight_K: weight of each class.
        shrinkage: strength of the pull to 0, in samples per class.

    >>> logits, labels = torch.tensor([[1.0, 0.0]]).repeat(40, 1), np.arange(40) % 2
    >>> offsets = fit_class_offsets(TopScores.from_logits(logits, labels), torch.ones(2), shrinkage=1e-6)
    >>> round(float(offsets[1] - offsets[0]), 2)  # both classes are equally likely
    1.0
    """
    return _minimize(scores, weight_K, shrinkage, lambda delta_K: (scores.logits_Nm + _gather(delta_K, scores), 1.0))


def fit_class_scales(scores: TopScores, weight_K: Tensor, *, shrinkage: float = SCALE_SHRINKAGE) -> Tensor:
    """Return class-wise inverse temperatures s with the lowest class-weighted cross-entropy of s · log p.

    Minimizes Σ_i w_i CE(s · log p_i, y_i) + (λ/2) Σ_k (log s_k)², with p the softmax of the scores; weights and λ as in
    :func:`fit_class_offsets`.
    """
    absent_Nm = ~scores.logits_Nm.isfinite()
    log_p_Nm = scores.logits_Nm.log_softmax(dim=1).masked_fill(absent_Nm, 0)

    def scaled(log_scale_K: Tensor) -> tuple[Tensor, Tensor]:
        scaled_Nm = log_p_Nm * _gather(log_scale_K.exp(), scores)
        return scaled_Nm.masked_fill(absent_Nm, -torch.inf), scaled_Nm

    return _minimize(scores, weight_K, shrinkage, scaled).exp()


def _gather(values_K: Tensor, scores: TopScores) -> Tensor:
    return values_K.index_select(0, scores.classes_Nm.flatten()).view_as(scores.logits_Nm)


def _minimize(
    scores: TopScores,
    weight_K: Tensor,
    shrinkage: float,
    adjusted: Callable[[Tensor], tuple[Tensor, Tensor | float]],
) -> Tensor:
    """Minimize the weighted cross-entropy of adjusted scores plus a ridge over K parameters by L-BFGS.

    Args:
        scores: scores and labels.
        weight_K: weight of each class.
        shrinkage: strength of the ridge, in samples per class.
        adjusted: parameters → adjusted scores, and the derivative of each by the parameter of its class.
    """
    from scipy.optimize import minimize

    support_K = torch.bincount(scores.labels_N, minlength=scores.num_classes).double()
    seen_K = support_K > 0
    weight_N = (torch.where(seen_K, weight_K.double(), 0) / support_K.clamp(min=1))[scores.labels_N]
    ridge = shrinkage / float(support_K[seen_K].median())
    at_Nm = (scores.classes_Nm == scores.labels_N[:, None]) & scores.logits_Nm.isfinite()
    place_N1 = at_Nm.to(torch.uint8).argmax(dim=1, keepdim=True)

    dtype, classes = scores.logits_Nm.dtype, scores.classes_Nm.flatten()
    weight_N1 = weight_N.to(dtype)[:, None]

    def objective(values: Floats) -> tuple[float, Floats]:
        adjusted_Nm, slope_Nm = adjusted(torch.from_numpy(values).to(dtype))
        log_p_Nm = adjusted_Nm.log_softmax(dim=1)
        loss = -float(weight_N @ log_p_Nm.gather(1, place_N1)[:, 0].double())
        # Softmax minus one-hot, by hand: fits of few samples are many calls, and autograd takes twice as long.
        residual_Nm = (log_p_Nm.exp() * weight_N1).scatter_add_(1, place_N1, -weight_N1)
        gradient_K = torch.zeros(len(values), dtype=dtype).index_add_(0, classes, (residual_Nm * slope_Nm).flatten())
        return loss + ridge / 2 * float(values @ values), gradient_K.double().numpy() + ridge * values

    start = np.zeros(scores.num_classes)
    with single_blas_thread(), single_thread(when=scores.logits_Nm.numel() < MIN_PARALLEL):
        found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 60, "gtol": 1e-4})
    return torch.from_numpy(found.x)
