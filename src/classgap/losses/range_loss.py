"""Range loss (Zhang et al. 2017)."""

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
    """Cross-entropy plus a penalty on the farthest pairs of each class and a margin between the nearest class centers.

        CE  +  α Σ_c k / Σ_{j≤k} 1/D_j  +  β [M - min_{c≠c'} ‖μ_c - μ_c'‖²]₊

    D_j are the k largest squared distances between two samples of class c and μ_c is its mean, both in the global batch
    of all processes (N² distances). All classes count equally, regardless of their size. A class with fewer than
    k pairs uses all of them; a class with one sample has none. With a single class in the batch the last term is 0.

    Zhang et al., "Range loss for deep face recognition with long-tailed training data", ICCV 2017, arXiv 1611.08976. No
    official code was found. The defaults are attributed to the paper, but unverified. A widely copied implementation
    uses plain distances, α = β = 0.5 and M = 0.1. Such weights can collapse all features to one point, where neither
    term has a gradient. In a class of two samples it also counts the distance of a sample to itself, so the harmonic
    mean vanishes. The ELM paper (Sec. 3.2) uses only the last term: ``intra=0``.

    Args:
        num_classes: Number of classes K.
        intra: Weight α of the range within classes; 0 drops the term.
        inter: Weight β of the margin between centers; 0 drops the term.
        widest: Number k of the largest distances.
        margin: Margin M.
        squared: Whether distances are squared.
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
        """Return the parts "cross_entropy", "intra" and "inter", without those of weight 0."""
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
        # The base class averages over samples; the factor N / n_c makes it a sum over classes.
        carried_U = groups.counts_U.sum() / groups.counts_U.clamp(min=1).to(range_U.dtype)
        return groups.of_samples(range_U * carried_U, mine)

    def extra_repr(self) -> str:
        """Show the main settings."""
        return f"{super().extra_repr()}, intra={self.intra}, inter={self.inter}, margin={self.margin}"
