"""Base class of losses with a weight per class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from classgap.losses.arguments import check_class_weights
from classgap.losses.base import ClassLoss
from classgap.losses.inputs import LossInputs
from classgap.state.buffers import write


class ClassWeightedLoss(ClassLoss):
    """Base class of losses with a weight per class, 1 by default, that can be replaced during training.

    The weights are a buffer, so checkpoints contain them.

    Args:
        num_classes: Number of classes K.
        weight: Weight of each class.
        reduction: "mean", "sum" or "none", as in torch.
        ignore_index: Target value of samples to ignore.
        validate_args: Whether to check input values; see :class:`ClassLoss`.

    >>> from classgap.losses import CrossEntropyLoss
    >>> loss = CrossEntropyLoss(num_classes=2)
    >>> loss.reweight([0.5, 1.5])
    >>> loss.weight
    tensor([0.5000, 1.5000])
    """

    weight: Tensor

    def __init__(
        self,
        num_classes: int,
        *,
        weight: Sequence[float] | Tensor | None = None,
        reduction: str = "mean",
        ignore_index: int = -100,
        validate_args: bool = True,
    ) -> None:
        super().__init__(num_classes, reduction=reduction, ignore_index=ignore_index, validate_args=validate_args)
        self.register_buffer("weight", torch.ones(self.num_classes))
        self._equal = True  # all weights are 1: no weighting needed
        if weight is not None:
            self.reweight(weight)

    def reweight(self, weight: Sequence[float] | Tensor) -> None:
        """Replace the weights. All processes must pass the same values."""
        weights = check_class_weights("weight", weight, self.num_classes)
        write(self, "weight", weights.to(self.weight.device))
        self._equal = bool((weights == 1).all())

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        super()._load_from_state_dict(state_dict, prefix, *args)
        self._equal = bool((self.weight == 1).all())

    def weights_of(self, batch: LossInputs) -> Tensor:
        """Return the class weight of each sample, (B,); for soft targets the expected weight. 0 for ignored samples."""
        weights_K = self.weight.to(batch.logits_BK.dtype)
        if batch.soft_BK is not None:
            return batch.soft_BK @ weights_K
        return batch.counted(weights_K[batch.labels_B.clamp(min=0)])

    def over_mean_weight(self, terms_B: Tensor, batch: LossInputs) -> Tensor:
        """Divide weighted terms by the mean weight of the global batch.

        Their mean is the weighted mean Σ w_i t_i / Σ w_i, as in ``torch.nn.CrossEntropyLoss(weight=…)``.
        """
        if self._equal:
            return terms_B
        total, count = batch.shards.sums(self.weights_of(batch).sum(), batch.count())
        return terms_B * torch.where(total > 0, count / total, 0)
