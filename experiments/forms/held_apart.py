"""MR² with a fixed λ and LMDL's margin term against shrinking features."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from classgap.losses import ClassLoss, LargeMarginDiscriminativeLoss, MR2Loss, Part
from classgap.losses.inputs import LossInputs


class HeldApartMR2Loss(ClassLoss):
    """MR² with a fixed λ, and LMDL's margin term: class means keep δ_d from the boundaries of the head (LMDL Eq. 4.5).

    Args:
        num_classes: K.
        feature_dim: width of the features.
        strength: λ.
        distance: δ_d.
    """

    def __init__(
        self,
        num_classes: int,
        feature_dim: int,
        *,
        strength: float = 0.5,
        distance: float = 6.0,
        separate: float = 1.0,
        reduction: str = "mean",
        ignore_index: int = -100,
        validate_args: bool = True,
    ) -> None:
        super().__init__(num_classes, reduction=reduction, ignore_index=ignore_index, validate_args=validate_args)
        self.mr2 = MR2Loss(num_classes, strength=strength)
        self.lmdl = LargeMarginDiscriminativeLoss(
            num_classes, feature_dim, radius=0.0, distance=distance, compact=0.0, separate=separate, shrink=0.0
        )
        self.required_inputs = frozenset({"features", "head"})

    def parts(self, batch: LossInputs) -> dict[str, Part]:
        separate = {"separate": self.lmdl.parts(batch)["separate"]}
        return self.mr2.parts(batch) | separate

    def forward(self, logits: Tensor, targets: Tensor, **given: Any) -> Tensor:
        for part in (self.mr2, self.lmdl):
            part._frozen = self._frozen
        return super().forward(logits, targets, **given)
