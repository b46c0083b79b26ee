"""MR², Margin Regularization for performance disparity Reduction (Zhu et al., ICLR 2026)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from classgap.functional import (
    ClassGroups,
    class_margins,
    group_by_class,
    margin_cross_entropy,
    on_sphere,
)
from classgap.functional.class_groups import group_by_every_class
from classgap.functional.listed_pairs import ListedPairs, list_pairs
from classgap.functional.pairwise_pull import Pull, pull_with_force
from classgap.losses.arguments import (
    check_bool,
    check_choice,
    check_counts,
    check_float,
    check_fraction,
    check_int,
    check_norm_order,
)
from classgap.losses.base import ClassLoss, Part
from classgap.losses.inputs import LossInputs
from classgap.losses.safe_strength import safe_strength
from classgap.state import ClassStats, FeatureBank

# Upper limit of λ for strength="auto", the smallest λ in the paper. See docs/mr2.md for measurements.
AUTO_STRENGTH = 0.1


class MR2Loss(ClassLoss):
    """Cross-entropy with larger logit margins for classes with large feature norms, plus a pull within classes.

        mean over samples of   CE(z / γ_y, y)  +  λ ln[1 + Σ_{x⁺} exp(‖f - f⁺‖² - 2s̄)]            Eq. (1), (2), (4)

    Zhu et al., "Reducing class-wise performance disparity via margin regularization", ICLR 2026. γ_y grows with the
    running mean of the feature norm of class y; the mean of γ over the classes is c̄. The second term, the pull, brings
    samples of a class together. s̄ is the mean over the classes of the running within-class variance, the mean squared
    distance of the samples of a class to their mean. Positives x⁺ are the other samples of the class in the global
    batch of all processes. γ and s̄ carry no gradient.

    Three defaults are ours: ``margin``, ``strength`` and ``spread``. The loss as printed in the paper is
    ``MR2Loss(num_classes, margin=c̄, strength=λ, spread="plain")`` with numbers c̄ and λ; for CIFAR-100 the paper has
    c̄ = 2 and λ = 0.5. Rows of its Table 3: (a) ``logit="none", strength=0``; (b) ``logit="uniform", strength=0``; (c)
    ``strength=0``, also used for linear probing; (d) ``logit="none", slack=0, strength=λ``; (e) ``logit="none",
    strength=λ, spread="plain"``; (f) ``strength=λ, spread="plain"``; (b), (c) and (f) with ``margin=c̄``. Cosine
    classifiers: ``normalize=True, p=3.0``. Table 7: ``class_counts=…``.

    Args:
        num_classes: Number of classes K.
        margin: Mean c̄ of the margins γ.
        strength: Weight λ of the pull: a number, as in the paper, or "auto", which is at most 0.1 and capped in each
            batch so that the pull cannot dominate cross-entropy. With a fixed λ it can, and then the features shrink
            until the classes cannot be told apart. The cap is computed from the samples whose true class has a
            probability above 1/2; if there are none, λ is 0.
        p: Order of the feature norm that determines γ, from 1 to infinity; Eq. (17).
        logit: "spread" for γ from the features, "uniform" for γ = c̄, "none" for plain cross-entropy.
        slack: "spread" for 2s̄ from the running spread, or a number that replaces it.
        spread: "unbiased", or "plain" as in the paper, which underestimates the spread if a batch has few samples of a
            class.
        normalize: Whether to normalize features to unit length, as a cosine classifier does.
        decay: Decay of the running statistics.
        class_counts: Number of training samples of each class; adds logit adjustment, CE((z + ln π) / γ_y). The paper
            combines the two without a formula; this one is an assumption.
        memory_size: Number of recent features to keep as additional positives; useful with more classes than samples in
            a batch.
        reduction: "mean", "sum" or "none", as in torch.
        ignore_index: Target value of samples to ignore.
        validate_args: Whether to check input values; see :class:`ClassLoss`.

    >>> loss = MR2Loss(num_classes=3)
    >>> logits, features = torch.randn(8, 3, requires_grad=True), torch.randn(8, 5, requires_grad=True)
    >>> loss(logits, torch.tensor([0, 0, 1, 1, 2, 2, 0, 1]), features=features).backward()
    >>> sorted(loss.terms)
    ['logit', 'representation', 'representation_weight']
    >>> MR2Loss(num_classes=100, margin=2.0, strength=0.5, spread="plain").stats.unbiased  # as printed in the paper
    False
    """

    log_prior: Tensor | None

    def __init__(
        self,
        num_classes: int,
        *,
        margin: float = 1.0,
        strength: float | str = "auto",
        p: float = 2.0,
        logit: str = "spread",
        slack: float | str = "spread",
        spread: str = "unbiased",
        normalize: bool = False,
        decay: float = 0.9,
        class_counts: Sequence[float] | Tensor | None = None,
        memory_size: int = 0,
        reduction: str = "mean",
        ignore_index: int = -100,
        validate_args: bool = True,
    ) -> None:
        super().__init__(num_classes, reduction=reduction, ignore_index=ignore_index, validate_args=validate_args)
        self.margin = check_float("margin", margin, gt=0)
        self.strength = strength if strength == "auto" else check_float("strength", strength, ge=0, or_value="auto")
        self.logit = check_choice("logit", logit, ("spread", "uniform", "none"))
        self.slack = slack if slack == "spread" else check_float("slack", slack, ge=0, or_value="spread")
        self.normalize = check_bool("normalize", normalize)
        self.pulls = self.strength != 0
        if self.pulls or self.logit == "spread":
            self.required_inputs = frozenset({"features"})
        self.stats = ClassStats(
            num_classes,
            p=check_norm_order("p", p),
            decay=check_fraction("decay", decay),
            unbiased=check_choice("spread", spread, ("unbiased", "plain")) == "unbiased",
        )
        self.memory = FeatureBank(memory_size) if check_int("memory_size", memory_size, ge=0) and self.pulls else None
        prior = None
        if class_counts is not None:
            counts = check_counts("class_counts", class_counts, num_classes)
            prior = (counts / counts.sum()).log().float()
        self.register_buffer("log_prior", prior)

    def parts(self, batch: LossInputs) -> dict[str, Part]:
        """Return the parts "logit" and "representation"."""
        if not self.required_inputs:
            return {"logit": Part(self._logit_term(batch))}
        features_BD = on_sphere(batch.features) if self.normalize else batch.features
        labels_N = batch.shards.gather(batch.labels_B)
        features_ND = batch.shards.gather(features_BD)
        groups, pairs = self._group(features_ND, labels_N, batch)
        if self.updates:
            self.stats.update(features_ND, groups, batch.finite, pairs)
        logit_B = self._logit_term(batch)
        if not self.pulls:
            return {"logit": Part(logit_B)}
        pulled = self._representation_term(features_ND, labels_N, groups, pairs, batch)
        strength: float | Tensor
        if self.strength == "auto":
            strength = safe_strength(logit_B.detach(), pulled.force_B, batch, largest=AUTO_STRENGTH)
        else:
            strength = float(self.strength)
        return {"logit": Part(logit_B), "representation": Part(pulled.terms_B, strength)}

    def feature_width(self) -> int | None:
        """Return the number of features in the memory, if it is in use."""
        return None if self.memory is None else self.memory.width

    def margins(self) -> Tensor:
        """Return the current margins γ, (K,)."""
        if self.logit == "spread":
            return class_margins(self.stats.size, mean=self.margin)
        return torch.full_like(self.stats.size, self.margin if self.logit == "uniform" else 1.0)

    def _group(
        self, features_ND: Tensor, labels_N: Tensor, batch: LossInputs
    ) -> tuple[ClassGroups, ListedPairs | None]:
        """Group the samples by class, and list the pairs that both the spread and the pull use, if possible."""
        # With several processes each lists the pairs of its own samples only, while the spread needs all pairs. The
        # features in the memory are part of the pull, but not of the spread.
        if self.pulls and self.memory is None and len(batch.shards.sizes) == 1:
            groups = group_by_every_class(labels_N, self.num_classes, complete=batch.complete)
            pairs = list_pairs(features_ND, groups, anchors=len(features_ND))
            if pairs is not None:
                return groups, pairs
        return batch.group_by_class(self.num_classes), None

    def _logit_term(self, batch: LossInputs) -> Tensor:
        """Eq. (1)."""
        prior_K = None if self.log_prior is None else self.log_prior.to(batch.logits_BK.dtype)
        gamma_B = None
        if self.logit != "none":
            labels_B = batch.labels_B if batch.complete else batch.labels_B.clamp(min=0)
            gamma_B = self.margins().to(batch.logits_BK.dtype).index_select(0, labels_B)
        return margin_cross_entropy(batch.logits_BK, batch.labels_B, gamma_B, prior_K)

    def _representation_term(
        self, features_ND: Tensor, labels_N: Tensor, groups: ClassGroups, pairs: ListedPairs | None, batch: LossInputs
    ) -> Pull:
        """Eq. (2), with the features in the memory as additional positives."""
        if self.slack == "spread":
            slack_B = (2 * self.stats.mean_spread()).to(features_ND.dtype).expand(len(batch.labels_B))
        else:
            slack_B = features_ND.new_full((len(batch.labels_B),), float(self.slack))
        if self.memory is None:
            return pull_with_force(features_ND, groups, slack_B, first=batch.shards.first, pairs=pairs)
        positives, labels = self.memory.append_to(features_ND, labels_N)
        all_groups = group_by_class(labels, self.num_classes)
        pulled = pull_with_force(positives, all_groups, slack_B, first=batch.shards.first)
        if self.updates:  # after use, or a sample would be its own positive
            self.memory.update(features_ND.detach(), labels_N, batch.finite)
        return pulled

    def extra_repr(self) -> str:
        """Show the main settings."""
        return f"{super().extra_repr()}, margin={self.margin}, strength={self.strength!r}, logit={self.logit!r}"
