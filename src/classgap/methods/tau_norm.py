"""τ-normalization of the classifier (Kang et al. 2020)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from classgap.losses.arguments import check_choice, check_float
from classgap.methods.method import Method
from classgap.methods.wrapper import MethodWrapper
from classgap.models.heads import linear_head

if TYPE_CHECKING:
    from classgap.methods.protocol import TrainingRun

GRID = [step / 10 for step in range(21)]  # as published
METRICS = ("balanced", "accuracy", "hard", "worst")


class WeightNormalization(MethodWrapper):
    """Normalize the classifier rows after training, since rare classes tend to have small weight norms.

        w_k  ←  w_k / ‖w_k‖^τ,      without the bias                                                           Eq. (3)

    Kang et al., "Decoupling representation and classifier for long-tailed recognition", ICLR 2020, arXiv 1910.09217.
    τ = 0 only removes the bias; τ = 1 gives all rows unit norm. By default τ is the best of 0, 0.1, …, 2 on held-out
    samples, and the smallest in case of ties. The bias of the head is set to zero. The last line of the metrics reports
    τ.

    The published code reports all 21 values of τ without selecting one. Its metric is the mean class accuracy
    (``monitor=balanced``), which equals the accuracy on the paper's balanced validation sets.

    Args:
        inner: Method to train.
        tau: τ, or "validation" to select it on held-out samples.
        monitor: Metric that selects τ: "balanced", "accuracy", "hard" or "worst".

    >>> from classgap.losses import CrossEntropyLoss
    >>> WeightNormalization(Method(CrossEntropyLoss(num_classes=10))).monitor
    'balanced'
    """

    def __init__(self, inner: Method, *, tau: float | str = "validation", monitor: str = "balanced") -> None:
        super().__init__(inner)
        chosen = tau == "validation"
        self.tau = None if chosen else check_float("tau", tau, ge=0, or_value="validation")
        self.monitor = check_choice("monitor", monitor, METRICS)

    def prepare(self, run: TrainingRun) -> None:
        """Require a linear head, and held-out samples to select τ."""
        super().prepare(run)
        linear_head(run.model, "tau-norm")
        if self.tau is None and run.validation is None:
            raise ValueError(
                "tau-norm selects tau on held-out samples, but val_fraction is 0. Set --val-fraction 0.1, or fix tau: "
                "tau-norm:tau=1. The test set is never used for selection."
            )

    @torch.no_grad()
    def finish(self, run: TrainingRun) -> None:
        """Select τ and normalize the head."""
        super().finish(run)
        head = linear_head(run.model, "tau-norm")
        if self.tau is None:
            self.tau = self._select_tau(run, head.weight)
        head.weight.copy_(normalized(head.weight, self.tau))
        if head.bias is not None:
            head.bias.zero_()

    def findings(self) -> dict[str, float]:
        """Return τ."""
        return super().findings() | ({} if self.tau is None else {"tau": self.tau})

    def _select_tau(self, run: TrainingRun, weight_KD: Tensor) -> float:
        assert run.validation is not None
        scores = run.scores(run.validation, features=True)
        weight_KD = weight_KD.to(scores.features_ND)

        def metric(tau: float) -> float:
            logits_NK = F.linear(scores.features_ND, normalized(weight_KD, tau))
            return replace(scores, logits_NK=logits_NK).accuracies()[self.monitor]

        return max(GRID, key=metric)  # max returns the first of equal values


def normalized(weight_KD: Tensor, tau: float) -> Tensor:
    """Divide each row by its norm to the power of τ; rows of zeros are unchanged.

    >>> normalized(torch.tensor([[3.0, 4.0], [1.0, 0.0]]), 1.0)
    tensor([[0.6000, 0.8000],
            [1.0000, 0.0000]])
    """
    norm_K1 = torch.linalg.vector_norm(weight_KD, dim=1, keepdim=True)
    return weight_KD / torch.where(norm_K1 > 0, norm_K1, 1).pow(tau)
