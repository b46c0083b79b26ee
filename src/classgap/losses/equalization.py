"""The equalization loss (Tan et al. 2020), in its softmax form."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from classgap.functional import equalization_cross_entropy
from classgap.losses.arguments import check_counts, check_float, check_probability
from classgap.losses.base import ClassLoss, Part
from classgap.losses.inputs import LossInputs


class EqualizationLoss(ClassLoss):
    """Cross-entropy that randomly removes rare classes from the denominator of other classes' samples.

        mean over samples of   -z_y + ln Σ_k w_k e^{z_k},      w_k = 1 - β_k [π_k < λ] [k ≠ y],   β_k ~ Bernoulli(γ)

    Tan et al., "Equalization Loss for Long-Tailed Object Recognition", CVPR 2020, arXiv 2003.05176, Eq. (9) to (11). β
    is drawn for each sample and class, in training only. In evaluation, with γ = 0, or if no class is rarer than λ, it
    is cross-entropy. On balanced data λ > 1/K makes *every* class rare. The MR² and ELM papers describe the loss as a
    margin of P(y'), which is inaccurate.

    The authors published only the sigmoid form, for detection. The defaults are those of a third-party implementation
    of the softmax form (CIFAR100-LT, imbalance 100; its threshold for CIFAR10-LT is 0.05), which exponentiates raw
    logits and may overflow.

    Args:
        class_counts: Number of training samples of each class.
        threshold: Prior λ below which a class is rare.
        drop: Probability γ of dropping a rare class from the denominator of a sample.
        reduction: "mean", "sum" or "none", as in torch.
        ignore_index: Target value of samples to ignore.
        validate_args: Whether to check input values; see :class:`ClassLoss`.

    >>> loss = EqualizationLoss([500, 499, 1], drop=1.0)
    >>> loss(torch.zeros(1, 3), torch.tensor([0]))  # ln 2: class 2 is left out
    tensor(0.6931)
    >>> loss.eval()(torch.zeros(1, 3), torch.tensor([0]))
    tensor(1.0986)
    """

    stochastic = True
    rare: Tensor

    def __init__(
        self,
        class_counts: Sequence[float] | Tensor,
        *,
        threshold: float = 0.005,
        drop: float = 0.9,
        reduction: str = "mean",
        ignore_index: int = -100,
        validate_args: bool = True,
    ) -> None:
        counts = check_counts("class_counts", class_counts)
        super().__init__(len(counts), reduction=reduction, ignore_index=ignore_index, validate_args=validate_args)
        self.threshold = check_float("threshold", threshold, ge=0)
        self.drop = check_probability("drop", drop)
        self.register_buffer("rare", counts / counts.sum() < self.threshold)

    def parts(self, batch: LossInputs) -> dict[str, Part]:
        """Return the part "cross_entropy" of the classes that were not dropped."""
        dropped_BK = self._draw(batch.logits_BK)
        return {"cross_entropy": Part(equalization_cross_entropy(batch.logits_BK, batch.labels_B, dropped_BK))}

    def _draw(self, logits_BK: Tensor) -> Tensor:
        """Draw the rare classes that each sample drops."""
        if not self.training:  # evaluation must not advance the random numbers of training
            return torch.zeros_like(logits_BK, dtype=torch.bool)
        return self.rare & (torch.rand_like(logits_BK) < self.drop)

    def extra_repr(self) -> str:
        """Show the main settings."""
        return f"{super().extra_repr()}, threshold={self.threshold}, drop={self.drop}"
