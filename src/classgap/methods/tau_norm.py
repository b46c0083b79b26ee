"""τ-normalisation of the classifier (Kang et al. 2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from classgap.losses.arguments import check_choice, check_float
from classgap.methods.method import Method
from classgap.methods.wrapper import MethodWrapper
from classgap.models.heads import linear_head

if TYPE_CHECKING:
    from classgap.engine.run import Run

GRID = [step / 10 for step in range(21)]  # 21 points from 0 to 2, as published
FIGURES = ("balanced", "accuracy", "hard", "worst")


class WeightNormalization(MethodWrapper):
    """After training, the rows of the classifier on more equal terms: rare classes tend to have short ones.

        w_k  ←  w_k / ‖w_k‖^τ,      without the bias                                                           Eq. (3)

    Kang et al., "Decoupling representation and classifier for long-tailed recognition", ICLR 2020, arXiv 1910.09217.
    τ = 0 is the model without its bias, τ = 1 has rows of one length. It is the best of 0, 0.1, …, 2 on held-out
    samples, the smallest of several; the features come from one pass. The head keeps a bias of zeros, and the last line
    of the metrics tells τ.

    The published code prints all 21 and leaves the choice to the reader; its figure is the mean class accuracy,
    ``monitor=balanced``, which on the paper's balanced validation sets is the accuracy.

    Args:
        inner: what is trained.
        tau: τ, or "validation" to choose it.
        monitor: by which figure of the held-out samples: "balanced", "accuracy", "hard" or "worst".

    >>> from classgap.losses import CrossEntropyLoss
    >>> WeightNormalization(Method(CrossEntropyLoss(num_classes=10))).monitor
    'balanced'
    """

    def __init__(self, inner: Method, *, tau: float | str = "validation", monitor: str = "balanced") -> None:
        super().__init__(inner)
        chosen = tau == "validation"
        self.tau = None if chosen else check_float("tau", tau, ge=0, or_value="validation")
        self.monitor = check_choice("monitor", monitor, FIGURES)

    def prepare(self, run: Run) -> None:
        """Check that there is something to choose by, and a linear head."""
        super().prepare(run)
        linear_head(run.model, "tau-norm")
        if self.tau is None and run.validation is None:
            raise ValueError(
                "tau-norm chooses tau on held-out samples, and this run has none: set --val-fraction, such as 0.1, or "
                "give a number, tau-norm:tau=1. The test set is never used to choose."
            )

    @torch.no_grad()
    def finish(self, run: Run) -> None:
        """Choose τ and change the head."""
        super().finish(run)
        head = linear_head(run.model, "tau-norm")
        if self.tau is None:
            self.tau = self._best(run, head.weight)
        head.weight.copy_(normalized(head.weight, self.tau))
        if head.bias is not None:
            head.bias.zero_()

    def findings(self) -> dict[str, float]:
        """The τ that was used."""
        return super().findings() | ({} if self.tau is None else {"tau": self.tau})

    def _best(self, run: Run, weight_KD: Tensor) -> float:
        assert run.validation is not None
        scores = run.scores(run.validation, features=True)
        weight_KD = weight_KD.to(scores.features_ND)

        def figure(tau: float) -> float:
            logits_NK = F.linear(scores.features_ND, normalized(weight_KD, tau))
            return type(scores)(logits_NK, scores.features_ND, scores.targets_N).accuracies()[self.monitor]

        return max(GRID, key=figure)  # the first of equals


def normalized(weight_KD: Tensor, tau: float) -> Tensor:
    """Rows over their lengths to the power of τ; a row of zeros stays one.

    >>> normalized(torch.tensor([[3.0, 4.0], [1.0, 0.0]]), 1.0)
    tensor([[0.6000, 0.8000],
            [1.0000, 0.0000]])
    """
    norm_K1 = torch.linalg.vector_norm(weight_KD, dim=1, keepdim=True)
    return weight_KD / torch.where(norm_K1 > 0, norm_K1, 1).pow(tau)
