"""Hybrid discriminative-generative training (Liu and Abbeel 2020)."""

from __future__ import annotations

import torch
from torch import Tensor

from classgap.functional import on_sphere, score_contrast
from classgap.losses.added_term import AddedTermLoss
from classgap.losses.arguments import check_bool, check_float, check_int
from classgap.losses.inputs import LossInputs
from classgap.state import FeatureBank


class HybridContrastiveLoss(AddedTermLoss):
    """Cross-entropy over classes plus cross-entropy over samples: a sample should score highest for its class.

        mean over samples of   CE(z, y)  +  λ ln[1 + Σ_{x⁻} exp((z_y(x⁻) - z_y(x)) / τ)]             ELM Sec. 3.2

    Liu and Abbeel, "Hybrid discriminative-generative training via contrastive learning", 2020, arXiv 2007.09070. The
    samples x⁻ are all other samples of the global batch of all processes, of any class, and a queue of earlier samples,
    whose logits carry no gradient.

    Differences between sources:

    - The official code (lhao499/HDGE) takes x⁻ only from a queue of 65,536 entries initialized with random numbers;
      here the queue starts empty. It computes z_y by a product with the one-hot label and a logsumexp over classes, so
      each of the K - 1 zeros counts as e⁰: with K = 10 a score of 1 becomes 2.46. Here z_y is the logit.
    - The ELM paper uses plain logits and does not specify x⁻: ``normalize=False, temperature=1.0, queue=0``.

    Args:
        num_classes: Number of classes K.
        strength: Weight λ of the contrastive term.
        temperature: Temperature τ.
        normalize: Whether to normalize the logits of each sample to unit length in this term.
        queue: Number of earlier samples to contrast with.
        reduction: "mean", "sum" or "none", as in torch.
        ignore_index: Target value of samples to ignore.
        validate_args: Whether to check input values; see :class:`ClassLoss`.

    >>> loss = HybridContrastiveLoss(num_classes=2)
    >>> _ = loss(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([0, 0]))
    >>> loss.terms["contrast"]  # one other sample with an equal score: ln 2
    tensor(0.6931)
    """

    term_name = "contrast"
    by_sample = False  # contrasts samples

    def __init__(
        self,
        num_classes: int,
        *,
        strength: float = 1.0,
        temperature: float = 0.1,
        normalize: bool = True,
        queue: int = 4096,
        reduction: str = "mean",
        ignore_index: int = -100,
        validate_args: bool = True,
    ) -> None:
        super().__init__(
            num_classes,
            strength=strength,
            required_inputs=frozenset(),
            reduction=reduction,
            ignore_index=ignore_index,
            validate_args=validate_args,
        )
        self.temperature = check_float("temperature", temperature, gt=0)
        self.normalize = check_bool("normalize", normalize)
        size = check_int("queue", queue, ge=0)
        self.queue = FeatureBank(size, num_classes) if size and self.strength else None

    def term(self, batch: LossInputs) -> Tensor:
        """The contrast of z_y over samples."""
        scores_BK = on_sphere(batch.logits_BK) if self.normalize else batch.logits_BK
        scores_NK, labels_N = batch.shards.gather(scores_BK), batch.shards.gather(batch.labels_B)
        scores_MK, labels_M = scores_NK, labels_N
        if self.queue is not None:
            scores_MK, labels_M = self.queue.append_to(scores_NK, labels_N)
        place_M = torch.arange(len(labels_M), device=labels_M.device)
        other_BM = (place_M[batch.shards.mine, None] != place_M) & (labels_M >= 0)
        terms_B = score_contrast(scores_BK, batch.labels_B, scores_MK, other_BM, temperature=self.temperature)
        if self.queue is not None and self.updates:  # after use, or a sample would be contrasted with itself
            self.queue.update(scores_NK.detach(), labels_N, batch.finite)
        return terms_B

    def extra_repr(self) -> str:
        """Show the main settings."""
        return f"{super().extra_repr()}, temperature={self.temperature}, normalize={self.normalize}"
