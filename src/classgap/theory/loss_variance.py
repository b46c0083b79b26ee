"""Lemmas 3 to 5 of ELM (Jitkrittum et al. 2022), appendix C.2: the steps from a variance to the pull."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from classgap.theory.arguments import check_delta, check_labels, check_matrix, check_positive, check_vector


@dataclass(frozen=True)
class MeanBound:
    """Terms of Lemma 3. Their sum bounds the expectation."""

    mean: Tensor
    deviation: Tensor
    low_order: Tensor

    @property
    def total(self) -> Tensor:
        """The bound itself."""
        return self.mean + self.deviation + self.low_order


def mean_bound(values_N: Tensor, *, upper: float, delta: float = 0.05) -> MeanBound:
    """Lemma 3 (Maurer and Pontil, 2009): with probability 1 - δ, the expectation of values in [0, B] is at most

        mean  +  √(2 V̂ ln(2/δ) / n)  +  7B ln(2/δ) / (3(n - 1)),   V̂ with divisor n - 1.

    The lemma prints the last term under the root, where it would have the wrong unit; its proof of Proposition 2 uses
    it outside, as here.

    Args:
        values_N: Independent values, at least two.
        upper: Upper end B of their range; the lower end is 0.
        delta: Probability δ that the bound fails.

    >>> mean_bound(torch.tensor([0.0, 1.0]).repeat(500), upper=1.0)
    MeanBound(mean=tensor(0.5000), deviation=tensor(0.0430), low_order=tensor(0.0086))
    """
    upper, n = check_positive("upper", upper), len(values_N)
    if n < 2:
        raise ValueError(f"values_N must have at least two values, got {n}.")
    values_N = check_vector("values_N", values_N, n)
    if float(values_N.min()) < 0 or float(values_N.max()) > upper:
        raise ValueError(
            f"values_N must be from 0 to upper, {upper:g}, got {values_N.min().item():g} to {values_N.max().item():g}."
        )
    log_term = math.log(2 / check_delta("delta", delta))
    return MeanBound(
        mean=values_N.mean(),
        deviation=(2 * values_N.var() * log_term / n).sqrt(),
        low_order=values_N.new_tensor(7 * upper * log_term / (3 * (n - 1))),
    )


@dataclass(frozen=True)
class LossVariances:
    """Variances within each of two classes, in ascending order by Lemmas 4 and 5."""

    log_2: Tensor  # of the log loss ln[1 + exp(-y(f + Δ_y))]
    linear_2: Tensor  # of the linear loss -y(f + Δ_y), which is that of the score
    trace_2: Tensor  # ‖w‖² tr(C_y): the variance of the features, which the pull bounds


def loss_variances(
    features_ND: Tensor,
    labels_N: Tensor,
    weight_D: Tensor,
    bias: float = 0.0,
    *,
    shift: tuple[float, float] = (0.0, 0.0),
) -> LossVariances:
    """V[log loss | y] ≤ V[linear loss | y] (Lemma 4) ≤ ‖w‖² tr(C_y) (Lemma 5), for f = wᵀΦ + b and divisor n.

    Lemma 4 holds because the log loss is 1-Lipschitz in f. Lemma 5 is tight if all features of a class lie on a line
    in the direction of w. Proposition 1 then bounds 2 tr(C_y) by the mean pull plus the slack.

    Args:
        features_ND: Features Φ(x).
        labels_N: 0 for y = -1, 1 for y = +1, -1 to ignore the row; at least one sample of each class.
        weight_D: Weights w.
        bias: Bias b.
        shift: Shifts Δ_y of classes 0 and 1.

    >>> f, y = torch.tensor([[-2.0, 1.0], [-4.0, 1.0], [2.0, 0.0], [2.0, 4.0]]), torch.tensor([0, 0, 1, 1])
    >>> found = loss_variances(f, y, torch.tensor([1.0, 0.0]))
    >>> found.log_2, found.linear_2, found.trace_2
    (tensor([0.0030, 0.0000]), tensor([1., 0.]), tensor([1., 4.]))
    """
    features_ND = check_matrix("features_ND", features_ND)
    weight_D = check_vector("weight_D", weight_D, features_ND.shape[1]).to(features_ND)
    labels_N = check_labels(labels_N, 2, rows=len(features_ND))
    by_class = []
    for label, sign in ((0, -1.0), (1, 1.0)):
        points_nD = features_ND[labels_N == label]
        if not len(points_nD):
            raise ValueError(f"labels_N must have at least one sample of each class, got none of class {label}.")
        linear_n = -sign * (points_nD @ weight_D + bias + shift[label])
        trace = weight_D.square().sum() * points_nD.var(dim=0, correction=0).sum()
        by_class.append((F.softplus(linear_n).var(correction=0), linear_n.var(correction=0), trace))
    log_2, linear_2, trace_2 = (torch.stack(values) for values in zip(*by_class, strict=True))
    return LossVariances(log_2=log_2, linear_2=linear_2, trace_2=trace_2)
