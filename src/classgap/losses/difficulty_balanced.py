"""Class-wise difficulty-balanced loss (Sinha et al. 2020)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from classgap.functional import difficulty_weights
from classgap.losses.arguments import check_float
from classgap.losses.base import Part
from classgap.losses.inputs import LossInputs
from classgap.losses.weighted import ClassWeightedLoss


class DifficultyBalancedLoss(ClassWeightedLoss):
    """Cross-entropy weighted by the difficulty of the class, which is updated once per epoch from class accuracies.

        mean over samples of   w_y CE(z, y),      w_c = K d_c^τ / Σ_k d_k^τ,      d_c = 1 - A_c
        τ = 2 / (1 + exp(-b)),      b = max A / (min A + 0.01) - 1                                  with tau="dynamic"

    Sinha et al., "Class-Wise Difficulty-Balanced Loss for Solving Class-Imbalance", ACCV 2020, arXiv 2010.01824. A_c is
    the accuracy of class c on held-out samples after the last epoch. Before the first update, and if no class has
    errors, all weights are 1. A class without errors has weight 0 until the next update; with two or three classes
    the weights may oscillate.

    The dynamic τ rises from 1 to 2 as the accuracies spread. In the published code this holds for ImageNet-LT; its
    version for CIFAR-LT omits the factor 2 and the -1. The weights average to 1 over the classes, not over the samples
    of a batch, as in the code.

    Args:
        num_classes: Number of classes K.
        tau: τ, or "dynamic". 0 is cross-entropy.
        reduction: "mean", "sum" or "none", as in torch.
        ignore_index: Target value of samples to ignore.
        validate_args: Whether to check input values; see :class:`ClassLoss`.

    >>> loss = DifficultyBalancedLoss(num_classes=3, tau=1)
    >>> loss.update_accuracies([0.9, 0.5, 0.1])
    >>> loss.weight
    tensor([0.2000, 1.0000, 1.8000])
    >>> loss(torch.zeros(2, 3), torch.tensor([0, 2]))
    tensor(1.0986)
    """

    soft_targets = True

    def __init__(
        self,
        num_classes: int,
        *,
        tau: float | str = "dynamic",
        reduction: str = "mean",
        ignore_index: int = -100,
        validate_args: bool = True,
    ) -> None:
        super().__init__(num_classes, reduction=reduction, ignore_index=ignore_index, validate_args=validate_args)
        self.tau = None if tau == "dynamic" else check_float("tau", tau, ge=0, or_value="dynamic")

    def update_accuracies(self, accuracies: Sequence[float] | Tensor) -> None:
        """Set the weights from the accuracy of each class, (K,). All processes must pass the same values."""
        accuracies_K = torch.as_tensor(accuracies, dtype=torch.float64).detach().cpu()
        if accuracies_K.shape != (self.num_classes,) or not bool(((accuracies_K >= 0) & (accuracies_K <= 1)).all()):
            raise ValueError(
                f"accuracies must be {self.num_classes} numbers in [0, 1], one per class; got {accuracies_K.tolist()}."
            )
        self.reweight(difficulty_weights(accuracies_K, self.tau))

    def parts(self, batch: LossInputs) -> dict[str, Part]:
        """Return the part "cross_entropy"."""
        weight = None if self._equal else self.weight.to(batch.logits_BK.dtype)
        terms_B = F.cross_entropy(batch.logits_BK, batch.targets, weight=weight, reduction="none", ignore_index=-1)
        return {"cross_entropy": Part(terms_B)}

    def extra_repr(self) -> str:
        """Show the main settings."""
        return f"{super().extra_repr()}, tau={'dynamic' if self.tau is None else self.tau}"
