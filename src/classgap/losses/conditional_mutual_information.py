"""CMIC-DL: deep learning constrained by conditional mutual information (Yang et al. 2023)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from classgap.functional import ClassGroups, concentration, separation
from classgap.losses.arguments import check_float, check_fraction
from classgap.losses.base import ClassLoss, Part
from classgap.losses.inputs import LossInputs
from classgap.state import ClassCentroids


class ConditionalMutualInformationLoss(ClassLoss):
    """Cross-entropy plus terms that concentrate the outputs of a class and separate the outputs of different classes.

        CE  +  λ mean_i KL(P_i ‖ Q_{y_i})  -  β Γ,      Γ = (1/N²) Σ_{i,j: y_i ≠ y_j} H(P_i, P_j),      P = softmax(z)

    Yang et al., "Conditional Mutual Information Constrained Deep Learning for Classification", TNNLS 2025, arXiv
    2309.09123. Pairs come from the global batch of all processes; H(P, R) = -Σ_k P_k ln R_k. With λ = β = 0 it is
    cross-entropy.

    Q_c is the mean output of class c. The paper alternates between updating the network and Q; here Q is a running
    mean, updated by each batch before it is used, without gradient. The first batch of a class sets it; before that it
    is uniform. -Γ is unbounded below, so probabilities are clamped to at least 1e-6 inside the logarithm. We found
    neither code by the authors nor their values of λ and β; the defaults are ours and should be tuned.

    Args:
        num_classes: Number of classes K.
        concentrate: Weight λ of the concentration.
        separate: Weight β of the separation.
        decay: Decay of the running means Q.
        reduction: "mean", "sum" or "none", as in torch.
        ignore_index: Target value of samples to ignore.
        validate_args: Whether to check input values; see :class:`ClassLoss`.

    >>> loss = ConditionalMutualInformationLoss(num_classes=2)
    >>> p = torch.tensor([[0.8, 0.2], [0.3, 0.7]])
    >>> _ = loss(p.log(), torch.tensor([0, 1]))
    >>> loss.terms["separation"]
    tensor(0.5570)
    """

    by_sample = False  # compares outputs within the batch

    def __init__(
        self,
        num_classes: int,
        *,
        concentrate: float = 0.1,
        separate: float = 0.1,
        decay: float = 0.99,
        reduction: str = "mean",
        ignore_index: int = -100,
        validate_args: bool = True,
    ) -> None:
        super().__init__(num_classes, reduction=reduction, ignore_index=ignore_index, validate_args=validate_args)
        self.concentrate = check_float("concentrate", concentrate, ge=0)
        self.separate = check_float("separate", separate, ge=0)
        momentum = check_fraction("decay", decay)
        self.outputs = ClassCentroids(self.num_classes, self.num_classes, momentum=momentum)

    def parts(self, batch: LossInputs) -> dict[str, Part]:
        """Return the parts "cross_entropy", "concentration" and "separation"; the last has a negative weight."""
        cross_entropy_B = F.cross_entropy(batch.logits_BK, batch.labels_B, reduction="none", ignore_index=-1)
        parts = {"cross_entropy": Part(cross_entropy_B)}
        if not self.concentrate and not self.separate:
            return parts
        log_p_NK = batch.shards.gather(batch.logits_BK.log_softmax(dim=1))
        groups = batch.group_by_class(self.num_classes)
        mine = batch.shards.mine
        if self.concentrate:
            if self.updates:
                self._update(log_p_NK.detach().exp(), groups, batch.finite)
            kl_B = concentration(log_p_NK[mine], self.centroids().to(log_p_NK.dtype)[batch.labels_B.clamp(min=0)])
            parts["concentration"] = Part(batch.counted(kl_B), self.concentrate)
        if self.separate:
            parts["separation"] = Part(separation(log_p_NK, groups, mine), -self.separate)
        return parts

    def centroids(self) -> Tensor:
        """Return the current centroids Q, one row per class, (K, K)."""
        return torch.where(self.outputs.seen[:, None], self.outputs.means, 1 / self.num_classes)

    def _update(self, p_NK: Tensor, groups: ClassGroups, finite: Tensor | None) -> None:
        self.outputs.update(self.outputs.blend(groups.mean(p_NK), groups), groups, finite)

    def extra_repr(self) -> str:
        """Show the main settings."""
        return f"{super().extra_repr()}, concentrate={self.concentrate}, separate={self.separate}"
