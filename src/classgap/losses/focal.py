"""The focal loss (Lin et al. 2017)."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from classgap.functional import sigmoid_focal, softmax_focal
from classgap.losses.arguments import check_choice, check_float
from classgap.losses.base import Part
from classgap.losses.inputs import LossInputs
from classgap.losses.weighted import ClassWeightedLoss

FORMS = {"softmax": softmax_focal, "sigmoid": sigmoid_focal}


class FocalLoss(ClassWeightedLoss):
    """Cross-entropy that downweights samples that are already classified well.

        softmax:   mean over samples of   w_y · -(1 - p_y)^γ ln p_y,          p = softmax(z)           Eq. (4), (5)
        sigmoid:   mean over samples of   w_y · Σ_k -(1 - q_k)^γ ln q_k,      q_y = σ(z_y), q_k = 1 - σ(z_k) for k ≠ y

    Lin et al., "Focal Loss for Dense Object Detection", ICCV 2017, arXiv 1708.02002. The paper uses the sigmoid form,
    for detection with multiple labels: each class is a binary problem. Classifiers mostly use the softmax form, which
    is cross-entropy for γ = 0. For the sigmoid form, initialize the bias of the last layer to -ln(K - 1); otherwise the
    negative classes dominate the first steps.

    The sum is divided by N, not by the sum of the weights.

    Args:
        num_classes: Number of classes K.
        gamma: Focusing parameter γ.
        form: "softmax" or "sigmoid".
        weight: Weight w of each class.
        reduction: "mean", "sum" or "none", as in torch.
        ignore_index: Target value of samples to ignore.
        validate_args: Whether to check input values; see :class:`ClassLoss`.

    >>> import torch
    >>> FocalLoss(num_classes=2, gamma=1.0)(torch.zeros(1, 2), torch.tensor([0]))
    tensor(0.3466)
    >>> FocalLoss(num_classes=2, gamma=1.0, form="sigmoid")(torch.zeros(1, 2), torch.tensor([0]))
    tensor(0.6931)
    """

    def __init__(
        self,
        num_classes: int,
        *,
        gamma: float = 2.0,
        form: str = "softmax",
        weight: Sequence[float] | Tensor | None = None,
        reduction: str = "mean",
        ignore_index: int = -100,
        validate_args: bool = True,
    ) -> None:
        super().__init__(
            num_classes, weight=weight, reduction=reduction, ignore_index=ignore_index, validate_args=validate_args
        )
        self.gamma = check_float("gamma", gamma, ge=0)
        self.form = check_choice("form", form, tuple(FORMS))

    def parts(self, batch: LossInputs) -> dict[str, Part]:
        """Return the part "focal"."""
        terms_B = FORMS[self.form](batch.logits_BK, batch.labels_B, self.gamma)
        return {"focal": Part(terms_B * self.weights_of(batch))}

    def extra_repr(self) -> str:
        """Show the main settings."""
        return f"{super().extra_repr()}, gamma={self.gamma}, form={self.form!r}"
