"""Confusional spectral regularization (Jin et al. 2025) without the adversarial part."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from classgap.functional import count_confusions, spectral_weights
from classgap.losses.arguments import check_probability
from classgap.losses.base import ClassLoss, Part
from classgap.losses.inputs import LossInputs
from classgap.state.buffers import write


class ConfusionalSpectralLoss(ClassLoss):
    """Cross-entropy mixed with cross-entropy weighted by each confusion's contribution to the worst-class error.

        mean over samples of   (1 - μ) CE(z, y)  +  μ (w CE(z, y) + w ln w),      w = G[predicted, y]

    Jin et al., "Enhancing Robust Fairness via Confusional Spectral Regularization", ICLR 2025, arXiv 2501.13273. G is
    the gradient of the spectral norm of the training set's confusion matrix, which bounds the error of the worst class.
    It is updated once per epoch by a pass over the training set:

        counts = Σ over batches, in eval mode, of loss.count_confusions(logits, targets)      # and over processes
        loss.update_confusion(counts)

    Before the first pass, or if there are no confusions, all weights are 1 and the loss is cross-entropy, as for μ = 0.

    The loss follows the published code with clean inputs, for which the third term, a divergence between clean and
    adversarial outputs, is 0. So does the MR² paper, which does not state its coefficients. The code differs from its
    paper: it minimizes this weighted cross-entropy, not the spectral norm itself; confusions are counts, not rates;
    they are counted after the true logit is multiplied by 1 - ``narrowing``, which raises negative logits; correctly
    classified samples have the weight G[y, y], not 0. The authors fine-tune a trained model for two epochs.

    Args:
        num_classes: Number of classes K.
        strength: Fraction μ of the weighted term.
        narrowing: Fraction to subtract from the true logit before counting confusions.
        reduction: "mean", "sum" or "none", as in torch.
        ignore_index: Target value of samples to ignore.
        validate_args: Whether to check input values; see :class:`ClassLoss`.

    >>> loss = ConfusionalSpectralLoss(num_classes=2)
    >>> loss.update_confusion([[0, 2], [1, 0]])  # rows: predicted
    >>> loss.pair_weights
    tensor([[0.0100, 2.0100],
            [0.0100, 0.0100]])
    >>> _ = loss(torch.tensor([[1.0, 0.0]]), torch.tensor([1]))
    >>> loss.terms  # 1.3133, and 2.01 · (1.3133 + ln 2.01)
    {'cross_entropy': tensor(1.3133), 'spectral': tensor(4.0429)}
    """

    pair_weights: Tensor

    def __init__(
        self,
        num_classes: int,
        *,
        strength: float = 0.3,
        narrowing: float = 0.1,
        reduction: str = "mean",
        ignore_index: int = -100,
        validate_args: bool = True,
    ) -> None:
        super().__init__(num_classes, reduction=reduction, ignore_index=ignore_index, validate_args=validate_args)
        self.strength = check_probability("strength", strength)
        self.narrowing = check_probability("narrowing", narrowing)
        self.register_buffer("pair_weights", torch.ones(self.num_classes, self.num_classes))

    def count_confusions(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Count the confusions of a batch by (predicted, true), a (K, K) integer matrix; the loss is unchanged."""
        labels = targets.long()
        labels_B = torch.where(labels == self.ignore_index, -1, labels)
        return count_confusions(logits.detach(), labels_B, narrowing=self.narrowing)

    def update_confusion(self, counts: Sequence[Sequence[float]] | Tensor) -> None:
        """Compute the weights G from these confusions. All processes must pass the same counts."""
        counts_KK = torch.as_tensor(counts, dtype=torch.float64).detach()
        wanted = (self.num_classes, self.num_classes)
        if counts_KK.shape != wanted or not bool((counts_KK >= 0).all() & counts_KK.isfinite().all()):
            raise ValueError(
                f"counts must be confusions by (predicted, true), a {wanted} matrix of finite numbers >= 0; got shape "
                f"{tuple(counts_KK.shape)} with a minimum of {counts_KK.min() if counts_KK.numel() else None}."
            )
        confused_KK = counts_KK - counts_KK.diag().diag()
        write(self, "pair_weights", spectral_weights(confused_KK).to(self.pair_weights.device))

    def parts(self, batch: LossInputs) -> dict[str, Part]:
        """Return the parts "cross_entropy" and "spectral"."""
        cross_entropy_B = F.cross_entropy(batch.logits_BK, batch.labels_B, reduction="none", ignore_index=-1)
        weights_KK = self.pair_weights.to(cross_entropy_B.dtype)
        weight_B = weights_KK[batch.logits_BK.argmax(dim=1), batch.labels_B.clamp(min=0)]
        weight_B = batch.counted(weight_B)
        spectral_B = weight_B * cross_entropy_B + torch.special.xlogy(weight_B, weight_B)
        return {
            "cross_entropy": Part(cross_entropy_B, 1 - self.strength),
            "spectral": Part(spectral_B, self.strength),
        }

    def extra_repr(self) -> str:
        """Show the main settings."""
        return f"{super().extra_repr()}, strength={self.strength}, narrowing={self.narrowing}"
