"""Logit adjustment (Menon et al. 2021), in its form as a loss."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor

from classgap.losses.arguments import check_counts, check_float
from classgap.losses.base import ClassLoss, Part
from classgap.losses.inputs import LossInputs


class LogitAdjustedLoss(ClassLoss):
    """Cross-entropy of logits shifted by the log class priors, so that the raw logits need not learn the priors.

        mean over samples of   CE(z + τ ln π, y)                                                             Eq. (10)

    Menon et al., "Long-tail learning via logit adjustment", ICLR 2021, arXiv 2007.07314. Predict with the raw logits;
    do not adjust them again afterward. With equal counts or τ = 0 it is cross-entropy.

    The published code adds ln(π^τ + 1e-12) to allow priors of 0. Here counts must be positive and nothing is added.

    Args:
        class_counts: Number of training samples of each class.
        tau: Scale τ of the adjustment.
        reduction: "mean", "sum" or "none", as in torch.
        ignore_index: Target value of samples to ignore.
        validate_args: Whether to check input values; see :class:`ClassLoss`.

    >>> import torch
    >>> loss = LogitAdjustedLoss([90, 10], reduction="none")
    >>> loss(torch.zeros(2, 2), torch.tensor([0, 1]))  # -ln 0.9 and -ln 0.1
    tensor([0.1054, 2.3026])
    """

    soft_targets = True
    adjustment: Tensor

    def __init__(
        self,
        class_counts: Sequence[float] | Tensor,
        *,
        tau: float = 1.0,
        reduction: str = "mean",
        ignore_index: int = -100,
        validate_args: bool = True,
    ) -> None:
        counts = check_counts("class_counts", class_counts)
        super().__init__(len(counts), reduction=reduction, ignore_index=ignore_index, validate_args=validate_args)
        self.tau = check_float("tau", tau, ge=0)
        self.register_buffer("adjustment", (self.tau * (counts / counts.sum()).log()).float())

    def parts(self, batch: LossInputs) -> dict[str, Part]:
        """Return the part "cross_entropy"."""
        adjusted_BK = batch.logits_BK + self.adjustment.to(batch.logits_BK.dtype)
        return {"cross_entropy": Part(F.cross_entropy(adjusted_BK, batch.targets, reduction="none", ignore_index=-1))}

    def extra_repr(self) -> str:
        """Show the main settings."""
        return f"{super().extra_repr()}, tau={self.tau}"
