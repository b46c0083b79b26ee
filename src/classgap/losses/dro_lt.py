"""DRO-LT (Samuel and Chechik 2021), the "DRL" baseline of the MR² paper."""

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
    """Cross-entropy plus a contrast, around each class centroid, of the class's samples with the whole batch.

        CE  +  λ mean_c mean_{x∈c} ln Σ_{x'} exp[(‖f - μ_c‖ - ‖f' - μ_c‖ + ε_c 1[y' ≠ c]) / τ]        cf. ELM Eq. (5)

    Samuel and Chechik, "Distributional robustness loss for long-tail learning", ICCV 2021, arXiv 2104.03066. Samples x'
    come from the global batch of all processes. Centroids carry no gradient. Classes without a centroid have no term.

    Two forms:

    - as in the published code (default): plain distances, ε learned from 1, a mean over the classes present, and
      centroids that :meth:`update` sets from a pass over the training set, before the first batch and once per epoch. ε
      is a parameter: call ``train_own_parameters(loss, optimizer)``. ε has no lower bound, and the loss decreases with
      it;
    - the one-stage form in the ELM paper: ``centroids="running", squared=True, epsilon=1.0, class_counts=…,
      average="sample"``. That paper states ε_y ∝ 1/√π_y without the factor.

    The published code (dvirsamuel/DRO-LT) weights cross-entropy by N_c / max N. Here it is unweighted, because
    ``sample_weight`` applies to all terms.

    Args:
        num_classes: Number of classes K.
        feature_dim: Number of features D.
        strength: Weight λ of the contrast.
        temperature: Temperature τ.
        epsilon: Radius ε: "learned", or a number for all classes; with ``class_counts`` it is divided by √π_y.
        class_counts: Number of training samples of each class.
        squared: Whether distances are squared.
        average: "class" for a mean over classes, as above, or "sample" for a mean over samples.
        centroids: "given" by :meth:`update`, or "running" means of the batches.
        momentum: Momentum of running centroids; the first batch of a class sets its centroid.
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
        self._has_centroids = False  # a copy on the host: reading ``seen`` in every call would synchronize
        if epsilon == "learned":
            if class_counts is not None:
                raise ValueError("class_counts scales a fixed epsilon and cannot be used with epsilon='learned'.")
            self.epsilon = nn.Parameter(torch.ones(self.num_classes))
        else:
            self.register_buffer("epsilon", _fixed_epsilon(epsilon, class_counts, self.num_classes))

    def update(self, centroids: Tensor, seen: Tensor | None = None) -> None:
        """Set the centroids. All processes must pass the same values.

        Args:
            centroids: Class means, (K, D).
            seen: Which classes have a mean, (K,) of bool; all by default.
        """
        shape = self.centroids.means.shape
        seen = torch.ones(shape[0], dtype=torch.bool) if seen is None else seen
        if centroids.shape != shape or not bool(centroids.isfinite().all()):
            raise ValueError(
                f"centroids must be finite and of shape {tuple(shape)}, got shape {tuple(centroids.shape)}."
            )
        if seen.shape != shape[:1] or seen.dtype != torch.bool:
            raise ValueError(f"seen must be {shape[0]} booleans, got shape {tuple(seen.shape)} of {seen.dtype}.")
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
        factor_U = known_U.to(features_ND.dtype)
        if self.by_class:  # the base class averages over samples; make it a mean over classes
            factor_U = factor_U * groups.counts_U.sum() / (factor_U.sum().clamp(min=1) * groups.counts_U.clamp(min=1))
        return terms_B * groups.of_samples(factor_U, batch.shards.mine)

    def _prototypes(self, features_ND: Tensor, groups: ClassGroups, batch: LossInputs) -> tuple[Tensor, Tensor]:
        """Return the centroids of the classes present, and which of them have one."""
        if self.running and self.updates:
            blended_UD = self.centroids.blend(groups.mean(features_ND.detach()), groups)
            self.centroids.update(blended_UD, groups, batch.finite)
        elif not self.running and not self._has_centroids and not torch.compiler.is_compiling():
            raise ValueError(
                "DROLTLoss has no centroids yet: call loss.update(…) with the class means of the training features "
                "before the first batch, or use centroids='running'."
            )
        known_U = self.centroids.seen[groups.classes_U] & (groups.counts_U > 0)
        return self.centroids.means[groups.classes_U].to(features_ND.dtype), known_U

    def feature_width(self) -> int:
        """Return ``feature_dim``."""
        return self.centroids.means.shape[1]

    def extra_repr(self) -> str:
        """Show the main settings."""
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
