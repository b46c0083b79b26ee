"""Forms that are compared with MR² and are not part of the library."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from classgap.functional import class_margins, group_by_class, growing_force, squared_norm
from classgap.losses import ClassLoss, Part
from classgap.losses.batch import Batch
from classgap.methods import METHODS
from classgap.methods.entry import MethodEntry
from classgap.models import MODELS, build
from classgap.registry import Entry
from classgap.state import ClassStats


class BoundedNormLoss(ClassLoss):
    """Cross-entropy, and a ‖f‖² whose hold on the features' scale is at most ``force`` times cross-entropy's.

    Args:
        num_classes: K.
        strength: the largest a.
        force: the bound's factor.
        weights: "equal", or "margin": ‖f‖² / γ_y² with Corollary 1's γ, the complexity term of MR² Eq. (13).
        margin: c̄ of the logit margin; 0 leaves it out.
    """

    def __init__(
        self,
        num_classes: int,
        *,
        strength: float = 1e9,
        force: float = 1.0,
        weights: str = "equal",
        margin: float = 0.0,
        reduction: str = "mean",
        ignore_index: int = -100,
    ) -> None:
        super().__init__(num_classes, reduction=reduction, ignore_index=ignore_index)
        self.strength, self.force, self.weights, self.margin = strength, force, weights, margin
        self.needs = frozenset({"features"})
        self.stats = ClassStats(num_classes)

    def parts(self, batch: Batch) -> dict[str, Part]:
        labels_B, valid_B = batch.labels_B.clamp(min=0), batch.labels_B >= 0
        if self.updates:
            labels_N = batch.shards.gather(batch.labels_B)
            self.stats.update(
                batch.shards.gather(batch.features).detach(), group_by_class(labels_N, self.num_classes), batch.finite
            )
        gamma_B = class_margins(self.stats.size, mean=1.0)[labels_B]
        logits = batch.logits_BK if not self.margin else batch.logits_BK / (self.margin * gamma_B)[:, None]
        cross_entropy_B = F.cross_entropy(logits, batch.labels_B, reduction="none", ignore_index=-1)
        norm_B = squared_norm(batch.features) * valid_B
        if self.weights == "margin":
            norm_B = norm_B / gamma_B.square()
        return {"logit": Part(cross_entropy_B), "norm": Part(norm_B, self._bounded(cross_entropy_B, norm_B, batch))}

    def _bounded(self, cross_entropy_B: Tensor, norm_B: Tensor, batch: Batch) -> Tensor:
        growing_B = growing_force(cross_entropy_B.detach()).clamp(min=0) * (batch.labels_B >= 0)
        growing, shrinking = batch.shards.sums(growing_B.sum(), 2 * norm_B.detach().sum())
        return (self.force * growing / shrinking.clamp(min=torch.finfo(shrinking.dtype).tiny)).clamp(max=self.strength)


class Scaled(nn.Module):
    """Features times a number."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, features_BD: Tensor) -> Tensor:
        return self.scale * features_BD


def scaled_mlp(*, num_classes: int, input_shape: tuple[int, ...], scale: float = 1.0) -> nn.Module:
    """``mlp``, the same function whatever the scale of its features: what the features gain, the last layer loses."""
    *hidden, head = build("mlp", num_classes=num_classes, input_shape=input_shape)
    with torch.no_grad():
        head.weight /= scale
    return nn.Sequential(*hidden, Scaled(scale), head)


MODELS.entries["scaled-mlp"] = Entry(
    "scaled-mlp", "One hidden layer with features of any scale.", scaled_mlp, given=("num_classes", "input_shape")
)
METHODS.entries["bounded-norm"] = MethodEntry(
    "bounded-norm", "Cross-entropy and a bounded penalty on the feature norm.", BoundedNormLoss, given=("num_classes",)
)
