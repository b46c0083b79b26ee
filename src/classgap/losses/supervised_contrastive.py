"""Supervised contrastive learning (Khosla et al. 2020)."""

from __future__ import annotations

from torch import Tensor

from classgap.functional import SamplePairs, on_sphere, supervised_contrast
from classgap.losses.added_term import AddedTermLoss
from classgap.losses.arguments import check_float
from classgap.losses.base import Part
from classgap.losses.inputs import LossInputs


class SupervisedContrastiveLoss(AddedTermLoss):
    """Cross-entropy plus a contrast between each sample's positives and all other samples of the batch.

        w CE(z, y)  -  λ (1/|P|) Σ_{p∈P} ln[ exp(f·f_p/τ) / Σ_{a≠i} exp(f·f_a/τ) ],   ‖f‖ = 1              Eq. (2)

    Khosla et al., "Supervised contrastive learning", NeurIPS 2020, arXiv 2004.11362. Features are normalized to unit
    length. Positives P, the other samples of the class, and all other samples come from the global batch of all
    processes. The contrast of a sample without a positive is 0 and counts in the mean; ``terms["without_positive"]`` is
    the fraction of such samples.

    Two forms. *Joint* (default): both parts train the network at once. *Two stages*, as in the paper:
    ``cross_entropy=0`` trains the encoder with a projection head, whose output is ``features``; then cross-entropy
    trains a linear classifier on the frozen encoder. The first stage ignores the logits except for their shape:
    ``features.new_zeros(len(targets), num_classes)`` is sufficient.

    For two augmented views per image, concatenate them and repeat the targets: ``loss(logits, torch.cat([y, y]),
    features=torch.cat([view_1, view_2]))``. Then every sample has a positive.

    Differences between sources: the authors' PyTorch code (HobbitLong/SupContrast) multiplies the loss by τ/0.07; its
    default is τ = 0.07, its recipe uses 0.1. It leaves normalization to the network. The MR² paper does not state which
    form and weight it compares with.

    Args:
        num_classes: Number of classes K.
        strength: Weight λ of the contrast.
        cross_entropy: Weight w of cross-entropy; 0 drops it.
        temperature: Temperature τ.
        reduction: "mean", "sum" or "none", as in torch.
        ignore_index: Target value of samples to ignore.
        validate_args: Whether to check input values; see :class:`ClassLoss`.

    >>> import torch
    >>> loss = SupervisedContrastiveLoss(num_classes=3, cross_entropy=0.0, temperature=1.0)
    >>> features = torch.tensor([[1.0, 0.0], [5.0, 0.0], [0.0, 1.0], [0.0, 2.0]])
    >>> loss(torch.zeros(4, 3), torch.tensor([0, 0, 1, 1]), features=features)  # ln(e + 2) - 1
    tensor(0.5514)
    """

    term_name = "contrast"

    def __init__(
        self,
        num_classes: int,
        *,
        strength: float = 1.0,
        cross_entropy: float = 1.0,
        temperature: float = 0.1,
        reduction: str = "mean",
        ignore_index: int = -100,
        validate_args: bool = True,
    ) -> None:
        super().__init__(
            num_classes, strength=strength, reduction=reduction, ignore_index=ignore_index, validate_args=validate_args
        )
        self.cross_entropy = check_float("cross_entropy", cross_entropy, ge=0)
        self.temperature = check_float("temperature", temperature, gt=0)
        if not self.strength and not self.cross_entropy:
            raise ValueError("strength and cross_entropy must not both be 0: nothing would be learned.")

    def parts(self, batch: LossInputs) -> dict[str, Part]:
        """Return "cross_entropy", "contrast" and, with weight 0, "without_positive"."""
        parts = super().parts(batch)
        entropy = parts.pop("cross_entropy")
        if self.cross_entropy:
            parts = {"cross_entropy": Part(entropy.terms_B, self.cross_entropy), **parts}
        if self.strength:
            without_B = (batch.labels_B >= 0) & ~self._pairs(batch).positive_BN.any(dim=1)
            parts["without_positive"] = Part(without_B.to(batch.logits_BK.dtype), 0.0)
        return parts

    def term(self, batch: LossInputs) -> Tensor:
        """Eq. (2)."""
        unit_BD = on_sphere(batch.features)
        unit_ND = batch.shards.gather(unit_BD)
        return supervised_contrast(unit_BD, unit_ND, self._pairs(batch), temperature=self.temperature)

    @staticmethod
    def _pairs(batch: LossInputs) -> SamplePairs:
        return SamplePairs.from_labels(batch.shards.gather(batch.labels_B), batch.shards.mine)

    def extra_repr(self) -> str:
        """Show the main settings."""
        return f"{super().extra_repr()}, cross_entropy={self.cross_entropy}, temperature={self.temperature}"
