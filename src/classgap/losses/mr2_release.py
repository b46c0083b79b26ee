"""The loss of the code published with the MR² paper."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from classgap.functional import ClassGroups, margin_cross_entropy, pull, squared_norm
from classgap.losses.arguments import check_choice, check_float, check_fraction
from classgap.losses.base import ClassLoss, Part
from classgap.losses.inputs import LossInputs
from classgap.state.buffers import write


class _Form(NamedTuple):
    """Where the published versions differ."""

    p: float  # order of the norm of the statistics
    running_slack: bool  # whether s̄ is the running spread; else 0
    factor: float  # of the pull, in units of d


_FORMS = {
    "cifar": _Form(p=5.0, running_slack=False, factor=0.1),
    "imagenet": _Form(p=5.0, running_slack=True, factor=0.1),
    "compiled": _Form(p=2.0, running_slack=True, factor=1.0),
}


class MR2ReleaseLoss(ClassLoss):
    """The ``MRFLoss`` of the published MR² code in any of its three versions, for comparison with the paper.

        CE(z / γ_y, y)  +  λ b (1/K) Σ_c (1/n_c) Σ_{i∈c} ln[1 + Σ_{j∈c, j≠i} exp((‖f_i - f_j‖² - 2s̄) / 10d)]

        γ_k = K a_k^{1/3} / Σ_j a_j^{1/3},   a_k = running ‖μ_k‖_p² + running mean of ‖f - μ_k‖_p²

        source        p    s̄                   b
        "cifar"       5    0                    d/10
        "imagenet"    5    running spread       d/10
        "compiled"    2    running spread       d

    The "compiled" version is ``losses.cpython-310.pyc``; its source is not in the repository.

    **At the same λ, the pull is about 300 times weaker than in the paper**, and about 30 times weaker in the compiled
    version. This is the ratio of the gradients of Eq. (2) and of the published term with respect to the features, for
    100 classes, batches of 128 and 64 synthetic features (220 to 380, depending on the spread of the classes). The λ =
    0.1 of the published script thus corresponds to about 0.0003 in Eq. (2); the paper reports 0.01 to 0.9.

    It differs from the paper, and thus from :class:`MR2Loss`:

    - statistics use the norm p = 5 instead of 2 (3 for CLIP) except in the compiled version, and for p ≠ 2 the sum of
      the two norms is not the r² of Eq. (17);
    - the exponent is divided by 10d and the term multiplied by d/10 or d;
    - the term is averaged within each class, summed over classes and divided by *all* K, not averaged over samples;
    - unseen classes count as a = 0 in the mean of γ, which enlarges the γ of seen classes;
    - classes with one sample in the batch enter the running mean with a spread of 0;
    - s̄ is 0 in the CIFAR version (Table 3, row d) and uses p = 5 in the ImageNet version;
    - there is no c̄ (the CIFAR version cannot run, because it divides by an unset c̄; 1 is used here).

    As everywhere in classgap, evaluation does not update the statistics, and they are part of ``state_dict`` instead of
    being reset every epoch.

    Args:
        num_classes: Number of classes K; the published ImageNet script uses 1000 for every dataset.
        source: "cifar", "imagenet" or "compiled".
        strength: Weight λ of the pull.
        decay: Decay of the running statistics; 0.9 in the published CIFAR script, 0.999 in the ImageNet script.
        reduction: "mean", "sum" or "none", as in torch.
        ignore_index: Target value of samples to ignore.
        validate_args: Whether to check input values; see :class:`ClassLoss`.

    >>> loss = MR2ReleaseLoss(num_classes=1, strength=1.0)
    >>> features = torch.tensor([[0.0, 0.0], [2.0, 0.0]])
    >>> loss(torch.zeros(2, 1), torch.tensor([0, 0]), features=features)
    tensor(0.1596)
    """

    mean_norm: Tensor
    spread: Tensor

    def __init__(
        self,
        num_classes: int,
        *,
        source: str = "cifar",
        strength: float = 0.1,
        decay: float = 0.9,
        reduction: str = "mean",
        ignore_index: int = -100,
        validate_args: bool = True,
    ) -> None:
        super().__init__(num_classes, reduction=reduction, ignore_index=ignore_index, validate_args=validate_args)
        self.source = check_choice("source", source, tuple(_FORMS))
        self.strength = check_float("strength", strength, ge=0)
        self.decay = check_fraction("decay", decay)
        self.required_inputs = frozenset({"features"})
        self.register_buffer("mean_norm", torch.zeros(num_classes))
        self.register_buffer("spread", torch.zeros(num_classes))

    def parts(self, batch: LossInputs) -> dict[str, Part]:
        """Return the parts "logit" and "representation"."""
        features_ND = batch.shards.gather(batch.features)
        groups = batch.group_by_class(self.num_classes)
        if self.updates:
            self._update(features_ND.detach(), groups, batch.finite)
        root_K = (self.mean_norm + self.spread).to(features_ND.dtype).pow(1 / 3)
        gamma_K = self.num_classes * root_K / root_K.sum()
        gamma_K = torch.where(gamma_K > 0, gamma_K, 1)  # unseen classes, in evaluation before training
        gamma_B = gamma_K[batch.labels_B.clamp(min=0)]
        return {
            "logit": Part(margin_cross_entropy(batch.logits_BK, batch.labels_B, gamma_B)),
            "representation": Part(self._representation_term(features_ND, groups, batch), self.strength),
        }

    def _representation_term(self, features_ND: Tensor, groups: ClassGroups, batch: LossInputs) -> Tensor:
        form, width = _FORMS[self.source], features_ND.shape[1]
        slack = 2 * self.spread.mean() if form.running_slack else self.spread.new_zeros(())
        slack_B = (slack / (10 * width)).to(features_ND.dtype).expand(len(batch.labels_B))
        scaled_ND = features_ND / (10 * width) ** 0.5
        terms_B = pull(scaled_ND, groups, slack_B, first=batch.shards.first)
        # The base class averages over samples; this makes it the sum of the class means, divided by K.
        counts_B = groups.of_samples(groups.counts_U, batch.shards.mine).clamp(min=1)
        return terms_B * (form.factor * width) * groups.counts_U.sum() / (self.num_classes * counts_B)

    @torch.no_grad()
    def _update(self, features_ND: Tensor, groups: ClassGroups, finite: Tensor | None) -> None:
        p = _FORMS[self.source].p
        means_UD, deviations_ND = groups.mean(features_ND), groups.centered(features_ND)
        seen_U = self.mean_norm[groups.classes_U] != 0  # as published: by value, not by a flag
        write_U = groups.counts_U > 0 if finite is None else (groups.counts_U > 0) & finite
        for name, new_U in (
            ("mean_norm", squared_norm(means_UD, p)),
            ("spread", groups.mean(squared_norm(deviations_ND, p))),
        ):
            old_U = self.get_buffer(name)[groups.classes_U].to(new_U.dtype)
            blended_U = torch.where(seen_U, self.decay * old_U + (1 - self.decay) * new_U, new_U)
            write(self, name, torch.where(write_U, blended_U, old_U), groups.classes_U)

    def extra_repr(self) -> str:
        """Show the main settings."""
        return f"{super().extra_repr()}, source={self.source!r}, strength={self.strength}"
