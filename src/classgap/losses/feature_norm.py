"""Cross-entropy with a penalty on the features' size: the control for losses that pull features together."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from classgap.functional import squared_norm
from classgap.losses.arguments import check_float
from classgap.losses.base import ClassLoss, Part
from classgap.losses.inputs import LossInputs
from classgap.losses.safe_strength import safe_strength


class FeatureNormLoss(ClassLoss):
    """Cross-entropy, and smaller features for all samples alike.

        mean over samples of   CE(z, y)  +  a ‖f‖²

    No paper proposes it. A loss that pulls the samples of a class together also makes features smaller; this one does
    nothing else, and knows no classes. What it gains was not gained by tighter classes. It costs next to nothing: no
    pairs, no statistics, nothing remembered.

    Args:
        num_classes: K.
        strength: a as a number, of which useful values depend on the features' scale and large ones wreck training; or
            "auto": in every batch so little that the penalty's hold on the features' scale is at most twice that of
            cross-entropy. 0 is cross-entropy.
        reduction: "mean", "sum" or "none", as in torch.
        ignore_index: Target value of samples to ignore.
        validate_args: Whether to check input values; see :class:`ClassLoss`.

    >>> import torch
    >>> loss = FeatureNormLoss(num_classes=3, strength=0.01)
    >>> _ = loss(torch.tensor([[2.0, 0.0, -1.0]]), torch.tensor([0]), features=torch.tensor([[3.0, 4.0]]))
    >>> loss.terms
    {'cross_entropy': tensor(0.1698), 'norm': tensor(25.)}
    """

    soft_targets = True

    def __init__(
        self,
        num_classes: int,
        *,
        strength: float | str = "auto",
        reduction: str = "mean",
        ignore_index: int = -100,
        validate_args: bool = True,
    ) -> None:
        super().__init__(num_classes, reduction=reduction, ignore_index=ignore_index, validate_args=validate_args)
        self.strength = strength if strength == "auto" else check_float("strength", strength, ge=0, or_value="auto")
        self.required_inputs = frozenset({"features"} if self.strength else ())

    @property
    def by_sample(self) -> bool:
        """A fixed strength asks nothing of other samples; "auto" is found from the batch."""
        return self.strength != "auto"

    def parts(self, batch: LossInputs) -> dict[str, Part]:
        """ "cross_entropy" and "norm"."""
        cross_entropy_B = F.cross_entropy(batch.logits_BK, batch.targets, reduction="none", ignore_index=-1)
        parts = {"cross_entropy": Part(cross_entropy_B)}
        if self.strength:
            norm_B = batch.counted(squared_norm(batch.features))
            parts["norm"] = Part(norm_B, self._factor(cross_entropy_B.detach(), norm_B.detach(), batch))
        return parts

    def _factor(self, cross_entropy_B: Tensor, norm_B: Tensor, batch: LossInputs) -> float | Tensor:
        if self.strength != "auto":
            return float(self.strength)
        # ‖f‖² falls twice as fast as the logarithm of the features' scale.
        return safe_strength(cross_entropy_B, 2 * norm_B, batch)

    def extra_repr(self) -> str:
        """The settings that make the form."""
        return f"{super().extra_repr()}, strength={self.strength!r}"
