"""Post-hoc logit adjustment (Menon et al. 2021)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from classgap.losses.arguments import check_counts, check_float
from classgap.methods.method import Method
from classgap.methods.wrapper import MethodWrapper
from classgap.models.heads import linear_head

if TYPE_CHECKING:
    from classgap.methods.protocol import TrainingRun


class PostHocLogitAdjustment(MethodWrapper):
    """Subtract the log class priors from the logits after training.

        predict   argmax_k  z_k - τ ln π_k                                                                     Eq. (9)

    Menon et al., "Long-tail learning via logit adjustment", ICLR 2021, arXiv 2007.07314. The shift is added to the
    bias of the head, so the saved model is adjusted. Evaluation on held-out samples during training also uses the
    shift, so ``--monitor`` selects the epoch for the adjusted model. The published code uses ln(π^τ + 1e-12) to allow
    for priors of 0.

    Args:
        inner: Method to train.
        class_counts: Training samples per class.
        tau: Scale τ of the shift; 0 disables it.

    >>> from classgap.losses import CrossEntropyLoss
    >>> PostHocLogitAdjustment(Method(CrossEntropyLoss(num_classes=2)), [90, 10]).shift
    tensor([0.1054, 2.3026])
    """

    shift: Tensor

    def __init__(self, inner: Method, class_counts: Sequence[float] | Tensor, *, tau: float = 1.0) -> None:
        super().__init__(inner)
        counts = check_counts("class_counts", class_counts)
        self.tau = check_float("tau", tau, ge=0)
        self.register_buffer("shift", (-self.tau * (counts / counts.sum()).log()).float(), persistent=False)
        self._in_head = False

    def prepare(self, run: TrainingRun) -> None:
        """Require a linear head with a bias."""
        super().prepare(run)
        if linear_head(run.model, "post-hoc-logit-adjustment").bias is None:
            raise ValueError(
                f"post-hoc-logit-adjustment shifts the bias of the head, but that of {run.config.model} has none: "
                f"{run.tap.head}. Use logit-adjustment, which adjusts the loss instead."
            )

    @torch.no_grad()
    def predict(self, run: TrainingRun, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return adjusted logits and features."""
        logits, features = super().predict(run, inputs)
        return (logits if self._in_head else logits + self.shift), features

    @torch.no_grad()
    def finish(self, run: TrainingRun) -> None:
        """Add the shift to the bias of the head."""
        super().finish(run)
        bias = run.tap.head.get_parameter("bias")
        bias.add_(self.shift.to(bias))
        self._in_head = True
