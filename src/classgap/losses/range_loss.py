"""Range loss for long-tailed data (Zhang et al. 2017)."""

from __future__ import annotations

from torch import Tensor

from classgap.functional import (
    ClassGroups,
    distances,
    margin_cross_entropy,
    nearest_centers,
    widest_ranges,
)
from classgap.losses.arguments import check_bool, check_float, check_int
from classgap.losses.base import ClassLoss, Part
from classgap.losses.inputs import LossInputs


class RangeLoss(ClassLoss):
    """Cross-entropy, narrow classes, and a margin between the two nearest class centers.

        CE  +  α Σ_c k / Σ_{j≤k} 1/D_j  +  β [M - min_{c≠c'} ‖μ_c - μ_c'‖²]₊

    D_j are the k largest squared distances between two samples of class c, μ_c its mean, both in the whole batch, on
    all processes: N² distances. Classes count alike, however many samples they have. One with fewer than k pairs takes
    those it has, one with a single sample none. With a single class in the batch the last part is 0.

    Zhang et al., "Range loss for deep face recognition with long-tailed training data", ICCV 2017, arXiv 1611.08976.
    No official code was found. The defaults are those remembered of the paper. A version that many copy has plain
    distances, α = β = 0.5 and M = 0.1; weights like these can shrink all features to one point, where both parts have
    no force left. With two samples of a class it also takes a sample's distance to itself for one of the largest, so
    that the harmonic mean vanishes; not so here. The ELM paper (Sec. 3.2) knows the last part only: ``intra=0``.

    Args:
        num_classes: K.
        intra: α; 0 leaves the part out.
        inter: β; 0 leaves the part out.
        widest: k.
        margin: M.
        squared: whether distances are squared; else they are plain.
        reduction: "mean", "sum" or "none", as in torch.
        ignore_index: Target value of samples to ignore.
        validate_args: Whether to check input values; see :class:`ClassLoss`.

    >>> import torch
    >>> loss = RangeLoss(num_classes=2, margin=0.1, squared=False)
    >>> features = torch.tensor([[0.0], [1.0], [2.0], [1.04]])
    >>> _ = loss(torch.zeros(4, 2), torch.tensor([0, 0, 0, 1]), features=features)
    >>> loss.terms["intra"], loss.terms["inter"]  # 2 / (1/2 + 1/1), and 0.1 - 0.04
    (tensor(1.3333), tensor(0.0600))
    """

    def __init__(
        self,
        num_classes: int,
        *,
        intra: float = 5e-5,
        inter: float = 1e-4,
        widest: int = 2,
        margin: float = 2e4,
        squared: bool = True,
        reduction: str = "mean",
        ignore_index: int = -100,
        validate_args: bool = True,
    ) -> None:
        super().__init__(num_classes, reduction=reduction, ignore_index=ignore_index, validate_args=validate_args)
        self.intra = check_float("intra", intra, ge=0)
        self.inter = check_float("inter", inter, ge=0)
        self.widest = check_int("widest", widest, ge=1)
        self.margin = check_float("margin", margin, ge=0)
        self.squared = check_bool("squared", squared)
        if self.intra or self.inter:
            self.required_inputs = frozenset({"features"})

    def parts(self, batch: LossInputs) -> dict[str, Part]:
        """ "cross_entropy", "intra" and "inter"; what has no weight is left out."""
        parts = {"cross_entropy": Part(margin_cross_entropy(batch.logits_BK, batch.labels_B))}
        if not self.required_inputs:
            return parts
        groups = batch.group_by_class(self.num_classes)
        features_ND = batch.shards.gather(batch.features)
        if self.intra:
            parts["intra"] = Part(self._intra(features_ND, groups, batch.shards.mine), self.intra)
        if self.inter:
            nearest = nearest_centers(groups.mean(features_ND), groups, squared=self.squared)
            shortfall = (self.margin - nearest).clamp(min=0)
            parts["inter"] = Part(batch.counted(shortfall.expand_as(batch.labels_B)), self.inter)
        return parts

    def _intra(self, features_ND: Tensor, groups: ClassGroups, mine: slice) -> Tensor:
        range_U = widest_ranges(distances(features_ND, features_ND, squared=self.squared), groups, self.widest)
        # The mean over samples has to become a sum over classes: a sample carries N / n_c.
        carried_U = groups.counts_U.sum() / groups.counts_U.clamp(min=1).to(range_U.dtype)
        return groups.of_samples(range_U * carried_U, mine)

    def extra_repr(self) -> str:
        """The settings that make the form."""
        return f"{super().extra_repr()}, intra={self.intra}, inter={self.inter}, margin={self.margin}"
