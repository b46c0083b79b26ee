"""Feature penalties under the bound of ``strength="auto"``, to find which part of MR²'s pull matters."""

from __future__ import annotations

import torch
from torch import Tensor

from classgap.functional import (
    ClassGroups,
    class_margins,
    group_by_class,
    margin_cross_entropy,
    pull_with_force,
    squared_norm,
)
from classgap.losses import ClassLoss, Part
from classgap.losses.inputs import LossInputs
from classgap.losses.safe_strength import safe_strength
from classgap.state import ClassStats
from forms.class_difficulty import ClassDifficulty


class PenaltyLoss(ClassLoss):
    """Cross-entropy and a penalty whose force on the feature scale is at most ``force`` times that of cross-entropy.

    Args:
        num_classes: K.
        term: penalized terms, joined by "&": "norm" (‖f‖²), "centroid" (the squared deviation from the batch's
            class mean), "pairs" (MR² Eq. 2), "mean-pair" (the mean squared distance to the class's other samples).
        weights: of classes: "one"; "margin" (1/γ², with "norm" the complexity term of Eq. 13 under Corollary 1's γ);
            "batch-margin" (the same, with γ from the batch alone); "hard" or "easy" (in proportion to the running
            training error, or to its inverse).
        force: the bound's factor.
        strength: the largest factor of the term; 0 for none.
        fixed: this factor, without any bound; 0 for the bound.
        margin: c̄ of the logit margin; 0 leaves it out.
    """

    def __init__(
        self,
        num_classes: int,
        *,
        term: str = "norm",
        weights: str = "one",
        force: float = 4.0,
        strength: float = 1e9,
        fixed: float = 0.0,
        margin: float = 0.0,
        reduction: str = "mean",
        ignore_index: int = -100,
        validate_args: bool = True,
    ) -> None:
        super().__init__(num_classes, reduction=reduction, ignore_index=ignore_index, validate_args=validate_args)
        self.term, self.weights, self.force = term, weights, force
        self.strength, self.fixed, self.margin = strength, fixed, margin
        self.required_inputs = frozenset({"features"})
        self.stats, self.difficulty = ClassStats(num_classes), ClassDifficulty(num_classes)

    def parts(self, batch: LossInputs) -> dict[str, Part]:
        labels_N, features_ND = batch.shards.gather(batch.labels_B), batch.shards.gather(batch.features)
        groups = group_by_class(labels_N, self.num_classes)
        if self.updates:
            self.stats.update(features_ND.detach(), groups, batch.finite)
            self.difficulty.update(batch.shards.gather(batch.logits_BK).detach(), labels_N, groups)
        label_B = batch.labels_B.clamp(min=0)
        gamma_B = class_margins(self.stats.size, mean=self.margin)[label_B] if self.margin else None
        logit_B = margin_cross_entropy(batch.logits_BK, batch.labels_B, gamma_B)
        weight_B = self._class_weights(features_ND.detach(), groups)[label_B]
        term_B, force_B = self._penalty(features_ND, groups, batch)
        term_B, force_B = batch.counted(weight_B * term_B), batch.counted(weight_B * force_B)
        factor = self._factor(logit_B.detach(), force_B.detach(), batch)
        return {"logit": Part(logit_B), "penalty": Part(term_B, factor)}

    def _penalty(self, features_ND: Tensor, groups: ClassGroups, batch: LossInputs) -> tuple[Tensor, Tensor]:
        """Return the terms and their derivatives with respect to the log feature scale."""
        terms = [self._one(name, features_ND, groups, batch) for name in self.term.split("&")]
        return sum(term for term, _ in terms), sum(force for _, force in terms)  # type: ignore[return-value]

    def _one(self, name: str, features_ND: Tensor, groups: ClassGroups, batch: LossInputs) -> tuple[Tensor, Tensor]:
        mine = batch.shards.mine
        if name == "pairs":
            slack_B = (2 * self.stats.mean_spread()).expand(len(batch.labels_B))
            pulled = pull_with_force(features_ND, groups, slack_B, first=batch.shards.first)
            return pulled.terms_B, pulled.force_B
        if name == "norm":
            term_B = squared_norm(batch.features)
        elif name == "centroid":
            term_B = squared_norm(groups.centered(features_ND))[mine]
        elif name == "mean-pair":  # Σ_j ‖f_i - f_j‖² / (n - 1) = n / (n - 1) (‖f_i - m‖² + mean_j ‖f_j - m‖²)
            square_N = squared_norm(groups.centered(features_ND))
            around_N = groups.of_samples(groups.mean(square_N), slice(None))
            counts_N = groups.of_samples(groups.counts_U.to(square_N), slice(None))
            term_B = ((square_N + around_N) * counts_N / (counts_N - 1).clamp(min=1))[mine]
        else:
            raise ValueError(f"term must be norm, centroid, pairs or mean-pair, got {name!r}.")
        return term_B, 2 * term_B

    def _class_weights(self, features_ND: Tensor, groups: ClassGroups) -> Tensor:
        one_K = torch.ones_like(self.stats.size)
        match self.weights:
            case "margin":
                return class_margins(self.stats.size).pow(-2)
            case "batch-margin":
                size_K = torch.zeros_like(one_K).index_copy(0, groups.classes_U, groups.mean(squared_norm(features_ND)))
                return class_margins(size_K).pow(-2)
            case "hard" | "easy":
                value_K = self.difficulty.error + 0.05
                value_K = value_K if self.weights == "hard" else 1 / value_K
                return value_K / value_K.mean()
        return one_K

    def _factor(self, logit_B: Tensor, force_B: Tensor, batch: LossInputs) -> Tensor:
        if self.fixed:
            return logit_B.new_tensor(self.fixed)
        return safe_strength(logit_B, force_B, batch, largest=self.strength, force=self.force)
