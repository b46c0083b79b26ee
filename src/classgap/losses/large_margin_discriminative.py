"""The Large Margin Discriminative Loss (Nguyen et al. 2024)."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from classgap.functional import boundary_shortfall, compactness, margin_cross_entropy
from classgap.losses.arguments import check_choice, check_float, check_fraction, check_int
from classgap.losses.base import ClassLoss, Part
from classgap.losses.inputs import LossInputs
from classgap.state import ClassCentroids


class LargeMarginDiscriminativeLoss(ClassLoss):
    """Cross-entropy plus terms that keep samples near their class centroid and centroids far from decision boundaries.

        CE  +  α mean_c mean_{f∈c} [‖f - m_c‖ - δ_v]₊²                                                     Eq. (4.4)
            +  β mean_c max_{i≠c} [δ_d - signed distance of m_c to the boundary of c and i]₊         Eq. (4.5), (4.6)
            +  γ mean_c ‖m_c‖                                                                              Eq. (4.7)

    Nguyen et al., "Large Margin Discriminative Loss for Classification", 2024. Means are over the classes in the global
    batch of all processes. The head receives gradients from the margin term. With ``centroids="partial"`` the first and
    third terms use running centroids, and the margin term uses batch means, because momentum would scale their gradient
    by 1 - momentum (Prop. 4.3). The first batch of a class sets its centroid. Identical rows of the head have no
    boundary and are skipped.

    Args:
        num_classes: Number of classes K.
        feature_dim: Number of features D.
        radius: Radius δ_v of the ball around a centroid.
        distance: Desired distance δ_d between centroids and boundaries.
        compact: Weight α of the compactness term.
        separate: Weight β of the margin term.
        shrink: Weight γ of the norm term; 0 drops it.
        momentum: Momentum of the running centroids.
        centroids: "partial" as above, "both" for running centroids in all terms, "none" for batch means in all terms.
        reduction: "mean", "sum" or "none", as in torch.
        ignore_index: Target value of samples to ignore.
        validate_args: Whether to check input values; see :class:`ClassLoss`.

    >>> head = torch.nn.Linear(5, 3)
    >>> loss = LargeMarginDiscriminativeLoss(num_classes=3, feature_dim=5)
    >>> features = torch.randn(8, 5, requires_grad=True)
    >>> targets = torch.tensor([0, 0, 1, 1, 2, 2, 0, 1])
    >>> loss(head(features), targets, features=features, head=head).backward()
    >>> sorted(loss.terms)
    ['compact', 'cross_entropy', 'separate', 'shrink']
    """

    def __init__(
        self,
        num_classes: int,
        feature_dim: int,
        *,
        radius: float = 0.5,
        distance: float = 6.0,
        compact: float = 1.0,
        separate: float = 1.0,
        shrink: float = 1e-3,
        momentum: float = 0.99,
        centroids: str = "partial",
        reduction: str = "mean",
        ignore_index: int = -100,
        validate_args: bool = True,
    ) -> None:
        super().__init__(num_classes, reduction=reduction, ignore_index=ignore_index, validate_args=validate_args)
        self.feature_dim = check_int("feature_dim", feature_dim, ge=1)
        self.radius = check_float("radius", radius, ge=0)
        self.distance = check_float("distance", distance, ge=0)
        self.compact = check_float("compact", compact, ge=0)
        self.separate = check_float("separate", separate, ge=0)
        self.shrink = check_float("shrink", shrink, ge=0)
        momentum = check_fraction("momentum", momentum)
        self.mode = check_choice("centroids", centroids, ("partial", "both", "none"))
        self.required_inputs = frozenset({"features", "head"} if self.separate else {"features"})
        self.centroids = (
            None if self.mode == "none" else ClassCentroids(num_classes, self.feature_dim, momentum=momentum)
        )
        _warn_of_small_distance(self.radius, self.distance)

    def parts(self, batch: LossInputs) -> dict[str, Part]:
        """Return the parts "cross_entropy", "compact", "separate" and "shrink", without those of weight 0."""
        features_ND = batch.shards.gather(batch.features)
        groups = batch.group_by_class(self.num_classes)
        mean_UD = groups.mean(features_ND)
        running_UD = mean_UD
        if self.centroids is not None:
            running_UD = self.centroids.blend(mean_UD, groups)
            if self.updates:
                self.centroids.update(running_UD.detach(), groups, batch.finite)
        # The base class averages over samples; the factor N / (classes present · n_c) makes it a mean over classes.
        present = (groups.counts_U > 0).sum()
        carried_U = groups.counts_U.sum() / (present.clamp(min=1) * groups.counts_U.clamp(min=1)).to(mean_UD.dtype)
        mine = batch.shards.mine
        carried_B = groups.of_samples(carried_U, mine)
        parts = {"cross_entropy": Part(margin_cross_entropy(batch.logits_BK, batch.labels_B))}
        if self.compact:
            center_BD = groups.of_samples(running_UD, mine)
            parts["compact"] = Part(carried_B * compactness(batch.features, center_BD, self.radius), self.compact)
        if self.separate:
            point_UD = running_UD if self.mode == "both" else mean_UD
            shortfall_U = self._shortfall(point_UD, groups.classes_U, batch)
            parts["separate"] = Part(carried_B * groups.of_samples(shortfall_U, mine), self.separate)
        if self.shrink:
            length_U = torch.linalg.vector_norm(running_UD, dim=1)
            parts["shrink"] = Part(carried_B * groups.of_samples(length_U, mine), self.shrink)
        return parts

    def _shortfall(self, point_UD: Tensor, classes_U: Tensor, batch: LossInputs) -> Tensor:
        """Eq. (4.5)."""
        assert batch.head is not None
        return boundary_shortfall(point_UD, classes_U, batch.head.weight_KD, batch.head.bias_K, distance=self.distance)

    def feature_width(self) -> int:
        """Return ``feature_dim``."""
        return self.feature_dim

    def extra_repr(self) -> str:
        """Show the main settings."""
        return f"{super().extra_repr()}, radius={self.radius}, distance={self.distance}, centroids={self.mode!r}"


def _warn_of_small_distance(radius: float, distance: float) -> None:
    if distance > 2 * radius:
        return
    lost = (
        "no class margin is guaranteed (Proposition 4.2, part 1, needs distance > radius)"
        if distance <= radius
        else "samples of one class may be farther apart than samples of two classes (Proposition 4.2, part 2, needs "
        "distance > 2 · radius)"
    )
    warnings.warn(f"distance={distance:g} with radius={radius:g}: {lost}.", stacklevel=3)
