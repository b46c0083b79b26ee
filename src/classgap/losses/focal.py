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
    """Cross-entropy that fades for samples which are right already.

        softmax:   mean over samples of   w_y · -(1 - p_y)^γ ln p_y,          p = softmax(z)           Eq. (4), (5)
        sigmoid:   mean over samples of   w_y · Σ_k -(1 - q_k)^γ ln q_k,      q_y = σ(z_y), q_k = 1 - σ(z_k) for k ≠ y

    Lin et al., "Focal Loss for Dense Object Detection", ICCV 2017, arXiv 1708.02002. The sigmoid form is the paper's,
    for detection with several labels; classifiers mostly use the softmax form, whose γ = 0 is cross-entropy. They are
    different losses: under the sigmoid form every class is a yes-or-no question of its own. Its last layer's bias
    wants to start at -ln(K - 1), or K sums of "no" drown the first steps.

    The mean is over samples, not over weights.

    Args:
        num_classes: K.
        gamma: γ, how fast it fades.
        form: "softmax" or "sigmoid".
        weight: w, a factor for each class.
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
        """ "focal"."""
        terms_B = FORMS[self.form](batch.logits_BK, batch.labels_B, self.gamma)
        return {"focal": Part(terms_B * self.weights_of(batch))}

    def extra_repr(self) -> str:
        """The settings that make the form."""
        return f"{super().extra_repr()}, gamma={self.gamma}, form={self.form!r}"
