"""Cross-entropy, the baseline of every comparison."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor

from classgap.losses.arguments import check_fraction
from classgap.losses.base import Part
from classgap.losses.inputs import LossInputs
from classgap.losses.weighted import ClassWeightedLoss


class CrossEntropyLoss(ClassWeightedLoss):
    """Cross-entropy with optional label smoothing, class weights and soft targets (mixup, CutMix).

        mean over samples of   -Σ_k t'_k w_k ln p_k  /  mean weight,      t' = (1 - ε) t + ε/K,   p = softmax(z)

    For class indices it equals ``torch.nn.CrossEntropyLoss(weight=w, label_smoothing=ε)``. The mean weight is the mean
    of Σ_k t_k w_k over the batch, so that one-hot soft targets and class indices give the same value; PyTorch omits it
    for soft targets. Label smoothing: Szegedy et al., CVPR 2016, arXiv 1512.00567.

    Args:
        num_classes: Number of classes K.
        label_smoothing: ε in [0, 1).
        weight: Weight w of each class; ``reweight`` replaces it later.
        reduction: "mean", "sum" or "none", as in torch.
        ignore_index: Target value of samples to ignore.
        validate_args: Whether to check input values; see :class:`ClassLoss`.

    >>> import torch
    >>> loss = CrossEntropyLoss(num_classes=3)
    >>> logits = torch.tensor([[2.0, 0.0, -1.0]])
    >>> loss(logits, torch.tensor([0]))
    tensor(0.1698)
    >>> loss(logits, torch.tensor([[0.5, 0.5, 0.0]]))
    tensor(1.1698)
    """

    soft_targets = True

    def __init__(
        self,
        num_classes: int,
        *,
        label_smoothing: float = 0.0,
        weight: Sequence[float] | Tensor | None = None,
        reduction: str = "mean",
        ignore_index: int = -100,
        validate_args: bool = True,
    ) -> None:
        super().__init__(
            num_classes, weight=weight, reduction=reduction, ignore_index=ignore_index, validate_args=validate_args
        )
        self.label_smoothing = check_fraction("label_smoothing", label_smoothing)

    @property
    def by_sample(self) -> bool:
        """False with class weights, which are divided by their mean over the batch."""
        return self._equal

    def parts(self, batch: LossInputs) -> dict[str, Part]:
        """Return the part "cross_entropy"."""
        terms_B = F.cross_entropy(
            batch.logits_BK,
            batch.targets,
            weight=None if self._equal else self.weight.to(batch.logits_BK.dtype),
            reduction="none",
            ignore_index=-1,
            label_smoothing=self.label_smoothing,
        )
        return {"cross_entropy": Part(self.over_mean_weight(terms_B, batch))}

    def extra_repr(self) -> str:
        """Show the main settings."""
        return f"{super().extra_repr()}, label_smoothing={self.label_smoothing}"
