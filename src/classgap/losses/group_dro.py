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
    """Class means of cross-entropy, mixed with weights that grow for the classes that do badly.

        Σ_c q_c l_c,      l_c = mean of CE(z, y) over class c,      q_c ← q_c exp(η l_c), normalized       Algorithm 1

    Sagawa et al., "Distributionally Robust Neural Networks for Group Shifts", ICLR 2020, arXiv 1911.08731. q is the
    same on every process and moves with the whole batch before it is used; no gradient flows through it. η = 0 leaves
    the plain mean of class means.

    A class absent from the batch has l_c = 0, so its share of q goes unused. With many more classes than samples that
    is most of q, and the loss is small by as much; ``renormalize=True`` (not in the paper) shares the absent classes'
    weight among those present. The authors sample groups equally often and train with strong weight decay or few
    epochs; without one of these all l_c reach 0 and q stops mattering.

    Args:
        num_classes: K.
        step: η.
        renormalize: whether the weights of the classes present add up to 1.
        reduction: "mean", "sum" or "none", as in torch.
        ignore_index: Target value of samples to ignore.
        validate_args: Whether to check input values; see :class:`ClassLoss`.

    >>> loss = GroupDROLoss(num_classes=2, step=0.5)
    >>> value = loss(torch.tensor([[2.0, 0.0], [2.0, 0.0]]), torch.tensor([0, 1]))
    >>> loss.weights()  # class 1 is wrong
    tensor([0.2689, 0.7311])
    """

    log_weights: Tensor
    by_sample = False  # the batch's class means

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
        """ "robust"."""
        cross_entropy_B = F.cross_entropy(batch.logits_BK, batch.labels_B, reduction="none", ignore_index=-1)
        groups = batch.group_by_class(self.num_classes)
        if self.updates:
            self._update(groups.mean(batch.shards.gather(cross_entropy_B.detach())), groups, batch.finite)
        weights_U = self.weights().to(cross_entropy_B.dtype)[groups.classes_U]
        if self.renormalize:
            present = (weights_U * (groups.counts_U > 0)).sum()
            weights_U = torch.where(present > 0, weights_U / present, 0)
        return {"robust": Part(cross_entropy_B * groups.carried(weights_U, batch.shards.mine))}

    def weights(self) -> Tensor:
        """q as it stands now, (K,); it adds up to 1."""
        return self.log_weights.exp()

    @torch.no_grad()
    def _update(self, losses_U: Tensor, groups: ClassGroups, finite: Tensor | None) -> None:
        losses_K = torch.zeros_like(self.log_weights).index_copy(0, groups.classes_U, losses_U.to(self.log_weights))
        new_K = exponentiated_step(self.log_weights, losses_K, self.step)
        write(self, "log_weights", new_K if finite is None else torch.where(finite, new_K, self.log_weights))

    def extra_repr(self) -> str:
        """The settings that make the form."""
        return f"{super().extra_repr()}, step={self.step}, renormalize={self.renormalize}"
