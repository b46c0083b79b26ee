"""DRO-LT, distributional robustness for the long tail; the "DRL" baseline of the MR² paper (Samuel & Chechik 2021)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from classgap.functional import ClassGroups, prototype_contrast
from classgap.losses.added_term import AddedTermLoss
from classgap.losses.arguments import check_bool, check_choice, check_counts, check_float, check_fraction, check_int
from classgap.losses.inputs import LossInputs
from classgap.state import ClassCentroids
from classgap.state.buffers import write


class DROLTLoss(AddedTermLoss):
    """Cross-entropy, and for each class centroid a contrast of the class's samples with all of the batch.

        CE  +  λ mean_c mean_{x∈c} ln Σ_{x'} exp[(‖f - μ_c‖ - ‖f' - μ_c‖ + ε_c 1[y' ≠ c]) / τ]        cf. ELM Eq. (5)

    Samuel and Chechik, "Distributional robustness loss for long-tail learning", ICCV 2021, arXiv 2104.03066. Samples
    x' are those of the whole batch, on all processes; no gradient flows to the centroids. Classes that have no
    centroid yet have no term.

    Two forms:

    - the published code's, the default: plain distances, ε learned from 1 on, a mean over the classes present, and
      centroids that :meth:`update` sets, before the first batch and once an epoch, from a pass over the training set.
      ``parameters()`` holds ε: ``train_own_parameters(loss, optimizer)``. Nothing bounds ε from below, and less is
      always better;
    - the one-stage form that the ELM paper compares with: ``centroids="running", squared=True, epsilon=1.0,
      class_counts=…, average="sample"``. That paper gives ε_y ∝ 1/√π_y without the factor.

    The published code (dvirsamuel/DRO-LT) weights its cross-entropy by N_c / max N, which ``sample_weight`` can
    not do for one part alone; here it is plain.

    Args:
        num_classes: K.
        feature_dim: D, the width of the features.
        strength: λ.
        temperature: τ.
        epsilon: ε: "learned", or a number for all classes; with ``class_counts`` that number over √π_y.
        class_counts: training samples of each class.
        squared: whether distances are squared.
        average: "class", as above, or "sample", a mean over samples.
        centroids: "given" by :meth:`update`, or "running" averages of the batch means.
        momentum: of running centroids; the first batch of a class sets its own.
        reduction: "mean", "sum" or "none", as in torch.
        ignore_index: Target value of samples to ignore.
        validate_args: Whether to check input values; see :class:`ClassLoss`.

    >>> loss = DROLTLoss(num_classes=2, feature_dim=1)
    >>> loss.update(torch.tensor([[0.0], [10.0]]))
    >>> _ = loss(torch.zeros(2, 2), torch.tensor([0, 1]), features=torch.tensor([[0.0], [10.0]]))
    >>> round(loss.terms["robust"].item(), 7)  # ln(1 + e^(1 - 10))
    0.0001234
    """

    term_name = "robust"
    epsilon: Tensor

    def __init__(
        self,
        num_classes: int,
        feature_dim: int,
        *,
        strength: float = 1.0,
        temperature: float = 1.0,
        epsilon: float | str = "learned",
        class_counts: Sequence[float] | Tensor | None = None,
        squared: bool = False,
        average: str = "class",
        centroids: str = "given",
        momentum: float = 0.9,
        reduction: str = "mean",
        ignore_index: int = -100,
        validate_args: bool = True,
    ) -> None:
        super().__init__(
            num_classes, strength=strength, reduction=reduction, ignore_index=ignore_index, validate_args=validate_args
        )
        self.temperature = check_float("temperature", temperature, gt=0)
        self.squared = check_bool("squared", squared)
        self.by_class = check_choice("average", average, ("class", "sample")) == "class"
        self.running = check_choice("centroids", centroids, ("given", "running")) == "running"
        width = check_int("feature_dim", feature_dim, ge=1)
        self.centroids = ClassCentroids(self.num_classes, width, momentum=check_fraction("momentum", momentum))
        self._has_centroids = False  # known here, so that no call has to read ``seen`` from the device
        if epsilon == "learned":
            if class_counts is not None:
                raise ValueError("class_counts scale a fixed epsilon; with epsilon='learned' leave them out.")
            self.epsilon = nn.Parameter(torch.ones(self.num_classes))
        else:
            self.register_buffer("epsilon", _fixed_epsilon(epsilon, class_counts, self.num_classes))

    def update(self, centroids: Tensor, seen: Tensor | None = None) -> None:
        """Use these class means from now on. Several processes have to be given the same.

        Args:
            centroids: (K, D).
            seen: which classes have a mean, (K,) of bool; all by default.
        """
        shape = self.centroids.means.shape
        seen = torch.ones(shape[0], dtype=torch.bool) if seen is None else seen
        if centroids.shape != shape or not bool(centroids.isfinite().all()):
            raise ValueError(f"centroids must be finite and of shape {tuple(shape)}; got {tuple(centroids.shape)}.")
        if seen.shape != shape[:1] or seen.dtype != torch.bool:
            raise ValueError(f"seen must be {shape[0]} of bool; got shape {tuple(seen.shape)} of {seen.dtype}.")
        write(self.centroids, "means", centroids.detach().to(self.centroids.means))
        write(self.centroids, "seen", seen.to(self.centroids.means.device))
        self._has_centroids = bool(seen.any())

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        super()._load_from_state_dict(state_dict, prefix, *args)
        stored = state_dict.get(f"{prefix}centroids.seen", self.centroids.seen)
        self._has_centroids = bool(stored.any())

    def term(self, batch: LossInputs) -> Tensor:
        """The contrast with the centroid, cf. ELM Eq. (5)."""
        features_ND = batch.shards.gather(batch.features)
        groups = batch.group_by_class(self.num_classes)
        prototypes_UD, known_U = self._prototypes(features_ND, groups, batch)
        terms_B = prototype_contrast(
            features_ND,
            groups,
            prototypes_UD,
            self.epsilon.to(features_ND.dtype)[groups.classes_U],
            rows=batch.shards.mine,
            temperature=self.temperature,
            squared=self.squared,
        )
        share_U = known_U.to(features_ND.dtype)
        if self.by_class:  # the mean over samples has to become a mean over classes
            share_U = share_U * groups.counts_U.sum() / (share_U.sum().clamp(min=1) * groups.counts_U.clamp(min=1))
        return terms_B * groups.of_samples(share_U, batch.shards.mine)

    def _prototypes(self, features_ND: Tensor, groups: ClassGroups, batch: LossInputs) -> tuple[Tensor, Tensor]:
        """The centroids of the classes present, and which of them have one."""
        if self.running and self.updates:
            blended_UD = self.centroids.blend(groups.mean(features_ND.detach()), groups)
            self.centroids.update(blended_UD, groups, batch.finite)
        elif not self.running and not self._has_centroids and not torch.compiler.is_compiling():
            raise ValueError(
                "DROLTLoss has no centroids yet: call loss.update(class means of the training set's features) before "
                "the first batch, or build it with centroids='running'."
            )
        known_U = self.centroids.seen[groups.classes_U] & (groups.counts_U > 0)
        return self.centroids.means[groups.classes_U].to(features_ND.dtype), known_U

    def feature_width(self) -> int:
        """``feature_dim``."""
        return self.centroids.means.shape[1]

    def extra_repr(self) -> str:
        """The settings that make the form."""
        centroids = "running" if self.running else "given"
        return (
            f"{super().extra_repr()}, temperature={self.temperature}, squared={self.squared}, centroids={centroids!r}"
        )


def _fixed_epsilon(epsilon: float | str, counts: Sequence[float] | Tensor | None, num_classes: int) -> Tensor:
    value = torch.full((num_classes,), check_float("epsilon", epsilon, ge=0, or_value="learned"))
    if counts is None:
        return value
    known = check_counts("class_counts", counts, num_classes)
    return value * (known.sum() / known).sqrt().float()
