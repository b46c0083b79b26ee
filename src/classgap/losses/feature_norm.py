"""Cross-entropy with a penalty on the features' size: the control for losses that pull features together."""

from __future__ import annotations

import torch.nn.functional as F

from classgap.functional import squared_norm
from classgap.losses.arguments import number
from classgap.losses.base import ClassLoss, Part
from classgap.losses.batch import Batch


class FeatureNormLoss(ClassLoss):
    """Cross-entropy, and smaller features for all samples alike.

        mean over samples of   CE(z, y)  +  a ‖f‖²

    No paper proposes it. A loss that pulls the samples of a class together also makes features smaller; this one does
    nothing else, and knows no classes. What it gains was not gained by tighter classes.

    Args:
        num_classes: K.
        strength: a; useful values depend on the features' scale, and from some size on it hurts. 0 is cross-entropy.
        reduction: "mean", "sum" or "none".
        ignore_index: the target of samples to leave out.

    >>> import torch
    >>> loss = FeatureNormLoss(num_classes=3)
    >>> _ = loss(torch.tensor([[2.0, 0.0, -1.0]]), torch.tensor([0]), features=torch.tensor([[3.0, 4.0]]))
    >>> loss.terms
    {'cross_entropy': tensor(0.1698), 'norm': tensor(25.)}
    """

    soft_targets = True

    def __init__(
        self, num_classes: int, *, strength: float = 0.01, reduction: str = "mean", ignore_index: int = -100
    ) -> None:
        super().__init__(num_classes, reduction=reduction, ignore_index=ignore_index)
        self.strength = number("strength", strength, at_least=0)
        self.needs = frozenset({"features"} if self.strength else ())

    def parts(self, batch: Batch) -> dict[str, Part]:
        """ "cross_entropy" and "norm"."""
        cross_entropy_B = F.cross_entropy(batch.logits_BK, batch.targets, reduction="none", ignore_index=-1)
        parts = {"cross_entropy": Part(cross_entropy_B)}
        if self.strength:
            parts["norm"] = Part(batch.counted(squared_norm(batch.features)), self.strength)
        return parts

    def extra_repr(self) -> str:
        """The settings that make the form."""
        return f"{super().extra_repr()}, strength={self.strength}"
