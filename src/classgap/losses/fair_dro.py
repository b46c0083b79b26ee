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
    """Class means of cross-entropy, mixed with weights that answer the training set's class losses once an epoch.

        Σ_c q_c l_c,      l_c = mean of CE(z, y) over class c in the batch

        q ← q + (1 - t/T)(q* - q),      q* = 1/K + √(2ρ/K) (L - L̄) / ‖L - L̄‖,      L_c over the training set

    Jung et al., "Re-weighting Based Group Fairness Regularization via Classwise Robust Optimization", ICLR 2023, arXiv
    2303.00442; q* is Eq. (8). ρ = 0 leaves the plain mean of class means. A class absent from the batch adds nothing.

    The paper has groups within classes. With the class itself as the group each class has one group, and its formula
    is 0/0. This is the one reading that is defined: a single stratum whose K groups are the classes, as in the
    authors' variant without strata; q starts at 1/K and always adds up to 1 (there it starts at 1 and the loss is
    divided by K throughout, so that the loss falls by a factor of K after the first answer). q* may be *negative* for
    classes that do well, which then unlearn; never for ρ ≤ 1 / (2(K - 1)).

    Args:
        num_classes: K.
        radius: ρ, of the χ² ball; published runs on images use 0.3 and 1.5, the published default is 0.5.
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
    by_sample = False  # the batch's class means

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
        """Answer the class losses of a pass over the training set; several processes have to be given the same.

        Args:
            class_losses: L, the mean cross-entropy of each class, (K,).
            progress: t/T, the part of the training that is over; the answer is the weaker the later it is.
        """
        losses_K = torch.as_tensor(class_losses, dtype=torch.float64).detach().to(self.weights.device)
        if losses_K.shape != (self.num_classes,) or not bool(losses_K.isfinite().all()):
            raise ValueError(
                f"class_losses must be {self.num_classes} finite numbers, one a class; got {losses_K.tolist()}: a "
                "class without training samples has no loss, leave it out of the problem."
            )
        step = 1 - check_probability("progress", progress)
        best_K = chi_square_weights(losses_K, self.radius)
        write(self, "weights", self.weights + step * (best_K - self.weights))

    def parts(self, batch: LossInputs) -> dict[str, Part]:
        """ "robust"."""
        cross_entropy_B = F.cross_entropy(batch.logits_BK, batch.labels_B, reduction="none", ignore_index=-1)
        groups = batch.group_by_class(self.num_classes)
        weights_U = self.weights.to(cross_entropy_B.dtype)[groups.classes_U]
        return {"robust": Part(cross_entropy_B * groups.carried(weights_U, batch.shards.mine))}

    def extra_repr(self) -> str:
        """The settings that make the form."""
        return f"{super().extra_repr()}, radius={self.radius}"
