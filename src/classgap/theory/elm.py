"""Propositions 1 and 2 of ELM (Jitkrittum et al. 2022), Sec. 4 and appendix C; the lemmas are in ``loss_variance``."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from classgap.functional import group_by_class, pull
from classgap.theory.arguments import check_delta, check_labels, check_matrix, check_vector
from classgap.theory.class_moments import class_moments
from classgap.theory.hard_pull import farthest_distances, hard_pull
from classgap.theory.loss_variance import LossVariances, MeanBound, loss_variances, mean_bound
from classgap.theory.neighbors import knn_predict

__all__ = [
    "LogLossBound",
    "LossVariances",
    "MeanBound",
    "PullBound",
    "farthest_distances",
    "generalization_bound",
    "hard_pull",
    "knn_predict",
    "loss_variances",
    "mean_bound",
    "mean_pull",
    "pull_bound",
]


@dataclass(frozen=True)
class PullBound:
    """Terms of Proposition 1, one number per class. Their sum is a lower bound on the mean pull of the class."""

    variance_K: Tensor  # 2n/(n - 1) Σ_j V̂[Φ_j | y]
    slack_K: Tensor  # -α_y
    count_K: Tensor  # ln(n - 1)

    @property
    def total_K(self) -> Tensor:
        """The lower bound; -inf for a class with fewer than two samples."""
        return self.variance_K + self.slack_K + self.count_K


def pull_bound(features_ND: Tensor, labels_N: Tensor, slack_K: Tensor) -> PullBound:
    """Proposition 1: 2n/(n - 1) Σ_j V̂[Φ_j | y] - α_y + ln(n - 1) ≤ mean pull of class y, V̂ with divisor n.

    The text after the proposition sums ‖Φ - μ_y‖² over the class instead of averaging; the proof in appendix C.1 agrees
    with the proposition.

    >>> bound = pull_bound(torch.tensor([[0.0, 0.0], [2.0, 0.0]]), torch.tensor([0, 0]), torch.ones(1))
    >>> bound.total_K  # 4 - 1 + ln 1; the pull is ln(1 + e³) = 3.0486
    tensor([3.])
    """
    slack_K = check_vector("slack_K", slack_K, len(slack_K))
    moments = class_moments(features_ND, labels_N, len(slack_K))
    others_K = (moments.counts_K - 1).clamp(min=0).to(slack_K)
    return PullBound(variance_K=moments.pair_distance_K, slack_K=-slack_K, count_K=others_K.log())


def mean_pull(features_ND: Tensor, labels_N: Tensor, slack_K: Tensor) -> Tensor:
    """Mean pull Ω̄_pull(y) of each class with all its samples as positives; NaN for a class without samples.

    >>> mean_pull(torch.tensor([[0.0, 0.0], [2.0, 0.0]]), torch.tensor([0, 0]), torch.ones(1))
    tensor([3.0486])
    """
    features_ND = check_matrix("features_ND", features_ND)
    slack_K = check_vector("slack_K", slack_K, len(slack_K)).to(features_ND)
    labels_N = check_labels(labels_N, len(slack_K), rows=len(features_ND))
    groups = group_by_class(labels_N, len(slack_K))
    pull_N = pull(features_ND, groups, slack_K[labels_N.clamp(min=0)])
    return torch.full_like(slack_K, torch.nan).index_copy(0, groups.classes_U, groups.mean(pull_N))


@dataclass(frozen=True)
class LogLossBound:
    """Terms of Proposition 2. Their sum bounds the expected logit-adjusted log loss."""

    risk: Tensor
    pull: Tensor
    low_order: Tensor

    @property
    def total(self) -> Tensor:
        """The bound itself."""
        return self.risk + self.pull + self.low_order


def generalization_bound(
    scores_N: Tensor,
    features_ND: Tensor,
    labels_N: Tensor,
    weight_D: Tensor,
    *,
    prior: tuple[float, float],
    slack: tuple[float, float],
    loss_bound: float,
    shift: tuple[float, float] = (0.0, 0.0),
    delta: float = 0.05,
) -> LogLossBound:
    """Proposition 2, for two classes: with probability 1 - δ the expected ln[1 + exp(-y(f + Δ_y))] is at most

        Σ_y P(y) · mean loss of S_y  +  ‖w‖ √(ln(4/δ) Σ_y P(y)/|S_y| [Ω̄_pull(y) + α_y])
                                     +  (7B/3) ln(4/δ) Σ_y P(y)/(|S_y| - 1).

    The proof spends δ/2 on each class, which gives ln(4/δ), but proof and proposition print ln(2/δ): the printed bound
    holds with probability 1 - 2δ only. Lemma 3 prints its last term under the root; the proof uses it outside. The
    variance of the lemma has the divisor n - 1, which the n/(n - 1) of Proposition 1 accounts for. The proposition
    assumes a scorer that was fixed before the sample was drawn. It has no term for the choice of f, so it is not a
    guarantee on the data that w and Φ were trained on.

    Args:
        scores_N: Logit f(x) = wᵀΦ(x) + b of class 1; for a head with two logits, their difference.
        features_ND: Features Φ(x).
        labels_N: 0 for y = -1, 1 for y = +1, -1 to ignore the row; at least two samples of each class.
        weight_D: Weights w.
        prior: Priors P(y) of classes 0 and 1 in the population.
        slack: Slacks α_y of classes 0 and 1.
        loss_bound: Upper bound B of the loss for all x and y.
        shift: Shifts Δ_y of classes 0 and 1.
        delta: Probability δ that the bound fails.

    >>> f, y = torch.tensor([[-2.0], [2.0]]).repeat(500, 1), torch.tensor([0, 1]).repeat(500)
    >>> generalization_bound(f[:, 0], f, y, torch.ones(1), prior=(0.5, 0.5), slack=(0.0, 0.0), loss_bound=1.0)
    LogLossBound(risk=tensor(0.1269), pull=tensor(0.2334), low_order=tensor(0.0205))
    """
    features_ND = check_matrix("features_ND", features_ND)
    scores_N = check_vector("scores_N", scores_N, len(features_ND)).to(features_ND)
    labels_N = check_labels(labels_N, 2, rows=len(features_ND))
    weight_D = check_vector("weight_D", weight_D, features_ND.shape[1]).to(features_ND)
    if min(prior) <= 0 or abs(sum(prior) - 1) > 1e-6:
        raise ValueError(f"prior must be two positive numbers that sum to 1, got {prior!r}.")
    counts_2 = torch.stack([(labels_N == 0).sum(), (labels_N == 1).sum()])
    if int(counts_2.min()) < 2:
        raise ValueError(f"labels_N must have at least two samples of each class, got {counts_2.tolist()}.")
    loss_N = _log_loss(scores_N, labels_N, scores_N.new_tensor(shift))
    if float(loss_N.max()) > loss_bound:
        raise ValueError(f"loss_bound must be at least the largest loss, {float(loss_N.max()):g}, got {loss_bound!r}.")
    prior_2, slack_2 = scores_N.new_tensor(prior), scores_N.new_tensor(slack)
    log_term = math.log(4 / check_delta("delta", delta))
    risk_2 = torch.stack([loss_N[labels_N == y].mean() for y in (0, 1)])
    pull_2 = mean_pull(features_ND, labels_N, slack_2)
    return LogLossBound(
        risk=(prior_2 * risk_2).sum(),
        pull=weight_D.norm() * (log_term * (prior_2 / counts_2 * (pull_2 + slack_2)).sum()).sqrt(),
        low_order=7 * loss_bound * log_term / 3 * (prior_2 / (counts_2 - 1)).sum(),
    )


def _log_loss(scores_N: Tensor, labels_N: Tensor, shift_2: Tensor) -> Tensor:
    """Return ln[1 + exp(-y(f + Δ_y))] with y = ±1; 0 for rows without a class."""
    class_N = labels_N.clamp(min=0)
    loss_N = F.softplus(-(2 * class_N - 1) * (scores_N + shift_2[class_N]))
    return torch.where(labels_N >= 0, loss_N, 0)
