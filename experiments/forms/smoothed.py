"""MR² with label smoothing."""

from __future__ import annotations

import torch

from classgap.losses import MR2Loss, Part
from classgap.losses.inputs import LossInputs


class SmoothedMR2Loss(MR2Loss):
    """MR² whose logit term has smoothed labels: (1 - ε) CE(z / γ_y, y) + ε mean over k of CE(z / γ_y, k).

    Args:
        num_classes: K.
        smoothing: ε.
    """

    def __init__(
        self,
        num_classes: int,
        *,
        smoothing: float = 0.1,
        reduction: str = "mean",
        ignore_index: int = -100,
        validate_args: bool = True,
    ) -> None:
        super().__init__(num_classes, reduction=reduction, ignore_index=ignore_index, validate_args=validate_args)
        self.smoothing = smoothing

    def parts(self, batch: LossInputs) -> dict[str, Part]:
        parts = super().parts(batch)  # strength="auto" still uses the probability of the true class
        gamma_B = self.margins().to(batch.logits_BK.dtype)[batch.labels_B.clamp(min=0)]
        even_B = -torch.log_softmax(batch.logits_BK / gamma_B[:, None], dim=1).mean(dim=1)
        return parts | {"smooth": Part(batch.counted(even_B) - parts["logit"].terms_B, self.smoothing)}
