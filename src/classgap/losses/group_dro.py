"""Group DRO (Sagawa et al. 2020) with classes as groups."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from classgap.functional import ClassGroups, exponentiated_step
from classgap.losses.arguments import check_bool, check_float
from classgap.losses.base import ClassLoss, Part
from classgap.losses.inputs import LossInputs
from classgap.state.buffers import write


class GroupDROLoss(ClassLoss):
    """Weighted sum of class-wise cross-entropies, with weights that grow for classes with a large loss.

        Σ_c q_c l_c,      l_c = mean of CE(z, y) over class c,      q_c ← q_c exp(η l_c), normalized       Algorithm 1

    Sagawa et al., "Distributionally Robust Neural Networks for Group Shifts", ICLR 2020, arXiv 1911.08731. q is the
    same on all processes, is updated with the global batch before it is used, and carries no gradient. With η = 0 it is
    the mean of the class means.

    A class absent from the batch has l_c = 0, so its weight is unused. With many more classes than samples, most of q
    is unused and the loss is correspondingly small; ``renormalize=True`` (not in the paper) divides by the weight of
    the classes present. The authors sample groups equally often and use strong weight decay or early stopping.
    Otherwise, all l_c reach 0 and q has no effect.

    Args:
        num_classes: Number of classes K.
        step: Step size η of the weights.
        renormalize: Whether the weights of the classes present sum to 1.
        reduction: "mean", "sum" or "none", as in torch.
        ignore_index: Target value of samples to ignore.
        validate_args: Whether to check input values; see :class:`ClassLoss`.

    >>> loss = GroupDROLoss(num_classes=2, step=0.5)
    >>> value = loss(torch.tensor([[2.0, 0.0], [2.0, 0.0]]), torch.tensor([0, 1]))
    >>> loss.weights()  # class 1 is wrong
    tensor([0.2689, 0.7311])
    """

    log_weights: Tensor
    by_sample = False  # uses class means of the batch

    def __init__(
        self,
        num_classes: int,
        *,
        step: float = 0.01,
        renormalize: bool = False,
        reduction: str = "mean",
        ignore_index: int = -100,
        validate_args: bool = True,
    ) -> None:
        super().__init__(num_classes, reduction=reduction, ignore_index=ignore_index, validate_args=validate_args)
        self.step = check_float("step", step, ge=0)
        self.renormalize = check_bool("renormalize", renormalize)
        self.register_buffer("log_weights", torch.full((self.num_classes,), -math.log(self.num_classes)))

    def parts(self, batch: LossInputs) -> dict[str, Part]:
        """Return the part "robust"."""
        cross_entropy_B = F.cross_entropy(batch.logits_BK, batch.labels_B, reduction="none", ignore_index=-1)
        groups = batch.group_by_class(self.num_classes)
        if self.updates:
            self._update(groups.mean(batch.shards.gather(cross_entropy_B.detach())), groups, batch.finite)
        weights_U = self.weights().to(cross_entropy_B.dtype)[groups.classes_U]
        if self.renormalize:
            present = (weights_U * (groups.counts_U > 0)).sum()
            weights_U = torch.where(present > 0, weights_U / present, 0)
        return {"robust": Part(cross_entropy_B * groups.sample_factors(weights_U, batch.shards.mine))}

    def weights(self) -> Tensor:
        """Return the current weights q, (K,), which sum to 1."""
        return self.log_weights.exp()

    @torch.no_grad()
    def _update(self, losses_U: Tensor, groups: ClassGroups, finite: Tensor | None) -> None:
        losses_K = torch.zeros_like(self.log_weights).index_copy(0, groups.classes_U, losses_U.to(self.log_weights))
        new_K = exponentiated_step(self.log_weights, losses_K, self.step)
        write(self, "log_weights", new_K if finite is None else torch.where(finite, new_K, self.log_weights))

    def extra_repr(self) -> str:
        """Show the main settings."""
        return f"{super().extra_repr()}, step={self.step}, renormalize={self.renormalize}"
