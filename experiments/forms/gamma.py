"""Class margins γ from other class statistics than MR²'s."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from classgap.functional import group_by_class, margin_cross_entropy
from classgap.losses import ClassLoss, Part
from classgap.losses.inputs import LossInputs
from classgap.state import ClassCentroids, ClassStats
from forms.class_difficulty import ClassDifficulty

SMALLEST = 0.01  # fraction of the mean margin


class GammaLoss(ClassLoss):
    """CE(z / γ_y, y) with γ_k in proportion to a class statistic to a power, and mean c̄.

    Args:
        num_classes: K.
        source: "size" (‖μ̂‖² + ‖ŝ‖², the paper's), "spread" (‖ŝ‖²), "relative" (‖ŝ‖² / ‖μ̂‖²), "nearest" (‖ŝ‖² over the
            squared distance to the nearest other mean), "error" or "margin" (running, of training; a small margin
            counts as hard), or "one" (γ = c̄ for all, which is cross-entropy with a temperature).
        exponent: 1/3 is the paper's.
        margin: c̄.
    """

    def __init__(
        self,
        num_classes: int,
        *,
        source: str = "size",
        exponent: float = 1 / 3,
        margin: float = 1.0,
        reduction: str = "mean",
        ignore_index: int = -100,
        validate_args: bool = True,
    ) -> None:
        super().__init__(num_classes, reduction=reduction, ignore_index=ignore_index, validate_args=validate_args)
        self.source, self.exponent, self.margin = source, exponent, margin
        self.required_inputs = frozenset({"features"})
        self.stats, self.difficulty = ClassStats(num_classes), ClassDifficulty(num_classes)
        self.means: ClassCentroids | None = None  # created with the first batch, which has the feature dimension

    def parts(self, batch: LossInputs) -> dict[str, Part]:
        if self.updates:
            self._update(batch)
        gamma_B = self.gamma().to(batch.logits_BK.dtype)[batch.labels_B.clamp(min=0)]
        return {"logit": Part(margin_cross_entropy(batch.logits_BK, batch.labels_B, gamma_B))}

    def _update(self, batch: LossInputs) -> None:
        labels_N, features_ND = batch.shards.gather(batch.labels_B), batch.shards.gather(batch.features).detach()
        groups = group_by_class(labels_N, self.num_classes)
        self.stats.update(features_ND, groups)
        self.difficulty.update(batch.shards.gather(batch.logits_BK).detach(), labels_N, groups)
        if self.means is None:
            self.means = ClassCentroids(self.num_classes, features_ND.shape[1], momentum=0.9)
        self.means.update(self.means.blend(groups.mean(features_ND), groups), groups)

    def gamma(self) -> Tensor:
        """Margin γ of each class, (K,); c̄ for classes not seen yet."""
        value_K = self._statistic().clamp(min=0)
        known_K = value_K > 0
        powered_K = torch.where(known_K, value_K, 1.0).pow(self.exponent)
        mean = (powered_K * known_K).sum() / known_K.sum().clamp(min=1)
        gamma_K = (powered_K * (self.margin / mean)).clamp(min=SMALLEST * self.margin)
        return torch.where(known_K, gamma_K, self.margin)

    def _statistic(self) -> Tensor:
        size_K, spread_K = self.stats.size, self.stats.spread
        match self.source:
            case "size":
                return size_K
            case "spread":
                return spread_K
            case "relative":
                return spread_K / (size_K - spread_K).clamp(min=1e-6)
            case "nearest":
                assert self.means is not None
                apart_KK = torch.cdist(self.means.means, self.means.means).square()
                return spread_K / apart_KK.fill_diagonal_(float("inf")).amin(dim=1).clamp(min=1e-6)
            case "error":
                return self.difficulty.error + 0.05  # so that a class without errors keeps a margin
            case "margin":
                return F.softplus(-self.difficulty.margin) + 0.05
        return torch.ones_like(size_K)
