"""The label-distribution-aware margin loss (Cao et al. 2019)."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from classgap.functional import label_margin_cross_entropy, label_margins
from classgap.losses.arguments import check_counts, check_float
from classgap.losses.base import Part
from classgap.losses.inputs import LossInputs
from classgap.losses.weighted import ClassWeightedLoss


class LDAMLoss(ClassWeightedLoss):
    """Cross-entropy of cosine logits with a margin that is larger for rarer classes.

        weighted mean over samples of   CE(s (z - m_y e_y), y),                                               Eq. (12)
        m_c ∝ N_c^{-1/4},   max_c m_c = margin                                                                Eq. (13)

    Cao et al., "Learning Imbalanced Datasets with Label-Distribution-Aware Margin Loss", NeurIPS 2019, arXiv
    1906.07413. The logits must be cosines between normalized features and normalized class weights without bias; margin
    and scale are meaningless for other logits. Use ``classgap.models.CosineClassifier(D, K, scale=1.0)``, since the
    loss applies its own scale. The weighted mean is Σ w_y CE / Σ w_y.

    Deferred reweighting (DRW) first keeps all weights at 1 and later calls ``reweight(effective_number_weights(counts,
    0.9999))``, in the published schedule at epoch 160 of 200.

    On balanced data all margins are equal but nonzero: a cosine softmax with a constant margin. With ``margin=0,
    scale=1`` it is cross-entropy.

    Args:
        class_counts: Number of training samples of each class.
        margin: Largest margin, that of the rarest class.
        scale: Scale s of the logits.
        weight: Weight w of each class; ``reweight`` replaces it later.
        reduction: "mean", "sum" or "none", as in torch.
        ignore_index: Target value of samples to ignore.
        validate_args: Whether to check input values; see :class:`ClassLoss`.

    >>> import torch
    >>> loss = LDAMLoss([16, 1], scale=1.0)
    >>> loss.margins
    tensor([0.2500, 0.5000])
    >>> loss(torch.tensor([[1.0, 0.0]]), torch.tensor([0]))
    tensor(0.3869)
    """

    margins: Tensor

    def __init__(
        self,
        class_counts: Sequence[float] | Tensor,
        *,
        margin: float = 0.5,
        scale: float = 30.0,
        weight: Sequence[float] | Tensor | None = None,
        reduction: str = "mean",
        ignore_index: int = -100,
        validate_args: bool = True,
    ) -> None:
        counts = check_counts("class_counts", class_counts)
        super().__init__(
            len(counts), weight=weight, reduction=reduction, ignore_index=ignore_index, validate_args=validate_args
        )
        self.margin = check_float("margin", margin, ge=0)
        self.scale = check_float("scale", scale, gt=0)
        self.register_buffer("margins", label_margins(counts, largest=self.margin).float())

    @property
    def by_sample(self) -> bool:
        """False with class weights, which are divided by their mean over the batch."""
        return self._equal

    def parts(self, batch: LossInputs) -> dict[str, Part]:
        """Return the part "cross_entropy"."""
        margin_B = self.margins.to(batch.logits_BK.dtype)[batch.labels_B.clamp(min=0)]
        terms_B = label_margin_cross_entropy(batch.logits_BK, batch.labels_B, margin_B, scale=self.scale)
        return {"cross_entropy": Part(self.over_mean_weight(terms_B * self.weights_of(batch), batch))}

    def extra_repr(self) -> str:
        """Show the main settings."""
        return f"{super().extra_repr()}, margin={self.margin}, scale={self.scale}"
