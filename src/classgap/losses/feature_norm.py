"""Cross-entropy with a penalty on the feature norm, a control for losses that pull features together."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from classgap.functional import squared_norm
from classgap.losses.arguments import check_float
from classgap.losses.base import ClassLoss, Part
from classgap.losses.inputs import LossInputs
from classgap.losses.safe_strength import safe_strength


class FeatureNormLoss(ClassLoss):
    """Cross-entropy plus a penalty on the squared norm of the features, the same for all classes.

        mean over samples of   CE(z, y)  +  a ‖f‖²

    This is a control, not a published method. A loss that pulls the samples of a class together also reduces the
    feature norms. This loss only reduces the norms, so its gains cannot come from more compact classes. Its cost is
    negligible: no pairs, no statistics, no state.

    Args:
        num_classes: Number of classes K.
        strength: Weight a: a number, or "auto", which is capped in each batch so that the penalty shrinks the features
            with at most twice the force with which cross-entropy enlarges them. The useful range of a number depends on
            the scale of the features; with large values, they shrink to 0. 0 is cross-entropy.
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
        """True for a fixed strength; "auto" depends on the batch."""
        return self.strength != "auto"

    def parts(self, batch: LossInputs) -> dict[str, Part]:
        """Return the parts "cross_entropy" and "norm"."""
        cross_entropy_B = F.cross_entropy(batch.logits_BK, batch.targets, reduction="none", ignore_index=-1)
        parts = {"cross_entropy": Part(cross_entropy_B)}
        if self.strength:
            norm_B = batch.counted(squared_norm(batch.features))
            parts["norm"] = Part(norm_B, self._factor(cross_entropy_B.detach(), norm_B.detach(), batch))
        return parts

    def _factor(self, cross_entropy_B: Tensor, norm_B: Tensor, batch: LossInputs) -> float | Tensor:
        if self.strength != "auto":
            return float(self.strength)
        # The derivative of ‖f‖² with respect to the logarithm of the feature scale is 2‖f‖².
        return safe_strength(cross_entropy_B, 2 * norm_B, batch)

    def extra_repr(self) -> str:
        """Show the main settings."""
        return f"{super().extra_repr()}, strength={self.strength!r}"
