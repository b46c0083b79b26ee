"""ELM, Embedding and Logit Margins (Jitkrittum et al. 2022)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from classgap.functional import margin_cross_entropy, pull
from classgap.losses.arguments import check_choice, check_counts, check_float
from classgap.losses.base import ClassLoss, Part
from classgap.losses.inputs import LossInputs

# α_y from the count N_y and the prior π_y of a class, by the settings of the paper (App. A).
SLACKS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "sqrt-count": lambda counts, prior: counts.sqrt(),  # CIFAR100-LT, iNaturalist
    "prior": lambda counts, prior: prior,  # CIFAR10-LT
    "10-sqrt-prior": lambda counts, prior: 10 * prior.sqrt(),  # ImageNet-LT
    "count": lambda counts, prior: counts,  # general advice of the paper
}


class ELMLoss(ClassLoss):
    """Logit-adjusted cross-entropy plus a pull within classes that makes rare classes more compact.

        mean over samples of   CE(z + ln π, y)  +  λ ln[1 + Σ_{x⁺} exp(‖f - f⁺‖² - α_y)]                      Eq. (4)

    Jitkrittum et al., "ELM: Embedding and Logit Margins for Long-Tail Learning", 2022, arXiv 2204.13208. Positives x⁺
    are the other samples of the class in the global batch of all processes. Predict with the raw logits.

    Args:
        class_counts: Number of training samples of each class.
        strength: Weight λ of the pull.
        slack: Slack α_y of each class: "sqrt-count" (√N_y), "prior" (π_y), "10-sqrt-prior" (10√π_y), "count" (N_y), a
            number for all classes, or one number per class.
        reduction: "mean", "sum" or "none", as in torch.
        ignore_index: Target value of samples to ignore.
        validate_args: Whether to check input values; see :class:`ClassLoss`.

    >>> loss = ELMLoss([90, 10], slack=1.0, strength=1.0)
    >>> f = torch.tensor([[0.0, 0.0], [2.0, 0.0]])
    >>> _ = loss(torch.zeros(2, 2), torch.tensor([1, 1]), features=f)
    >>> loss.terms  # -ln 0.1, and ln(1 + e³)
    {'logit': tensor(2.3026), 'pull': tensor(3.0486)}
    """

    log_prior: Tensor
    alpha: Tensor

    def __init__(
        self,
        class_counts: Sequence[float] | Tensor,
        *,
        strength: float = 0.01,
        slack: str | float | Sequence[float] | Tensor = "sqrt-count",
        reduction: str = "mean",
        ignore_index: int = -100,
        validate_args: bool = True,
    ) -> None:
        counts = check_counts("class_counts", class_counts)
        super().__init__(len(counts), reduction=reduction, ignore_index=ignore_index, validate_args=validate_args)
        self.strength = check_float("strength", strength, ge=0)
        self.required_inputs = frozenset({"features"} if self.strength else ())
        prior = counts / counts.sum()
        self.register_buffer("log_prior", prior.log().float())
        self.register_buffer("alpha", _slack(slack, counts, prior).float())

    def parts(self, batch: LossInputs) -> dict[str, Part]:
        """Return the parts "logit" and "pull"."""
        prior_K = self.log_prior.to(batch.logits_BK.dtype)
        parts = {"logit": Part(margin_cross_entropy(batch.logits_BK, batch.labels_B, log_prior_K=prior_K))}
        if self.strength:
            features_ND = batch.shards.gather(batch.features)
            groups = batch.group_by_class(self.num_classes)
            alpha_B = self.alpha.to(features_ND.dtype)[batch.labels_B.clamp(min=0)]
            parts["pull"] = Part(pull(features_ND, groups, alpha_B, first=batch.shards.first), self.strength)
        return parts

    def extra_repr(self) -> str:
        """Show the main settings."""
        return f"{super().extra_repr()}, strength={self.strength}"


def _slack(slack: str | float | Sequence[float] | Tensor, counts: Tensor, prior: Tensor) -> Tensor:
    if isinstance(slack, str):
        return SLACKS[check_choice("slack", slack, tuple(SLACKS))](counts, prior)
    if isinstance(slack, (int, float)):
        return torch.full_like(counts, check_float("slack", slack, ge=0))
    values = torch.as_tensor(slack, dtype=torch.float64).detach().cpu()
    if values.shape != counts.shape or not bool((values >= 0).all() & values.isfinite().all()):
        raise ValueError(
            f"slack must be {len(counts)} finite numbers >= 0, one per class; got shape {tuple(values.shape)}"
            f" with a minimum of {values.min().item() if values.numel() else None}."
        )
    return values
