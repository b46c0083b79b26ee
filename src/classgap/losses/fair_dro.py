"""FairDRO (Jung et al. 2023) with classes as groups."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from classgap.functional import chi_square_weights
from classgap.losses.arguments import check_float, check_probability
from classgap.losses.base import ClassLoss, Part
from classgap.losses.inputs import LossInputs
from classgap.state.buffers import write


class FairDROLoss(ClassLoss):
    """Weighted sum of class-wise cross-entropies, with weights updated once per epoch from the training losses.

        Σ_c q_c l_c,      l_c = mean of CE(z, y) over class c in the batch

        q ← q + (1 - t/T)(q* - q),      q* = 1/K + √(2ρ/K) (L - L̄) / ‖L - L̄‖,      L_c over the training set

    Jung et al., "Re-weighting Based Group Fairness Regularization via Classwise Robust Optimization", ICLR 2023, arXiv
    2303.00442; q* is Eq. (8). With ρ = 0 it is the mean of the class means. Classes absent from the batch add nothing.

    The paper has groups within classes. With classes as groups each class has a single group, and the formula becomes
    0/0. The implementation uses one stratum whose K groups are the classes, as in the authors' variant without strata.
    q starts at 1/K and always sums to 1; in the authors' code it starts at 1 and the loss is divided by K, so the loss
    drops by a factor of K after the first update. q* may be *negative* for classes with a small loss, which are
    then unlearned; this cannot happen for ρ ≤ 1 / (2(K - 1)).

    Args:
        num_classes: Number of classes K.
        radius: Radius ρ of the χ² ball. Published runs on images use 0.3 and 1.5; the published default is 0.5.
        reduction: "mean", "sum" or "none", as in torch.
        ignore_index: Target value of samples to ignore.
        validate_args: Whether to check input values; see :class:`ClassLoss`.

    >>> loss = FairDROLoss(num_classes=2)
    >>> loss.update_weights([1.0, 3.0])
    >>> loss.weights
    tensor([0., 1.])
    >>> loss(torch.zeros(2, 2), torch.tensor([0, 1]))
    tensor(0.6931)
    """

    weights: Tensor
    by_sample = False  # uses class means of the batch

    def __init__(
        self,
        num_classes: int,
        *,
        radius: float = 0.5,
        reduction: str = "mean",
        ignore_index: int = -100,
        validate_args: bool = True,
    ) -> None:
        super().__init__(num_classes, reduction=reduction, ignore_index=ignore_index, validate_args=validate_args)
        self.radius = check_float("radius", radius, ge=0)
        self.register_buffer("weights", torch.full((self.num_classes,), 1 / self.num_classes))

    def update_weights(self, class_losses: Sequence[float] | Tensor, *, progress: float = 0.0) -> None:
        """Update q with the class losses of a pass over the training set. All processes must pass the same values.

        Args:
            class_losses: Mean cross-entropy L of each class, (K,).
            progress: Completed fraction t/T of training; later updates are weaker.
        """
        losses_K = torch.as_tensor(class_losses, dtype=torch.float64).detach().to(self.weights.device)
        if losses_K.shape != (self.num_classes,) or not bool(losses_K.isfinite().all()):
            raise ValueError(
                f"class_losses must be {self.num_classes} finite numbers, one per class; got {losses_K.tolist()}: a "
                "class without training samples has no loss, remove it."
            )
        step = 1 - check_probability("progress", progress)
        best_K = chi_square_weights(losses_K, self.radius)
        write(self, "weights", self.weights + step * (best_K - self.weights))

    def parts(self, batch: LossInputs) -> dict[str, Part]:
        """Return the part "robust"."""
        cross_entropy_B = F.cross_entropy(batch.logits_BK, batch.labels_B, reduction="none", ignore_index=-1)
        groups = batch.group_by_class(self.num_classes)
        weights_U = self.weights.to(cross_entropy_B.dtype)[groups.classes_U]
        return {"robust": Part(cross_entropy_B * groups.sample_factors(weights_U, batch.shards.mine))}

    def extra_repr(self) -> str:
        """Show the main settings."""
        return f"{super().extra_repr()}, radius={self.radius}"
