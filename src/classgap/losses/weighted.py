"""What losses with a weight for each class share."""

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
    """A loss whose classes carry weights, all 1 unless given, that may be exchanged in training.

    The weights are a buffer, so checkpoints keep them.

    >>> from classgap.losses import CrossEntropyLoss
    >>> loss = CrossEntropyLoss(num_classes=2)
    >>> loss.reweight([0.5, 1.5])  # a method may do this between epochs
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
        self._equal = True  # whether all are 1, so that nothing has to be weighted
        if weight is not None:
            self.reweight(weight)

    def reweight(self, weight: Sequence[float] | Tensor) -> None:
        """Use these weights from now on. Several processes have to be given the same."""
        weights = check_class_weights("weight", weight, self.num_classes)
        write(self, "weight", weights.to(self.weight.device))
        self._equal = bool((weights == 1).all())

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        super()._load_from_state_dict(state_dict, prefix, *args)
        self._equal = bool((self.weight == 1).all())

    def weights_of(self, batch: LossInputs) -> Tensor:
        """Each sample's class weight, (B,); for soft targets the mean by their shares. 0 for ignored samples."""
        weights_K = self.weight.to(batch.logits_BK.dtype)
        if batch.soft_BK is not None:
            return batch.soft_BK @ weights_K
        return batch.counted(weights_K[batch.labels_B.clamp(min=0)])

    def over_mean_weight(self, terms_B: Tensor, batch: LossInputs) -> Tensor:
        """Terms that hold their class weights, over the whole batch's mean weight.

        Their mean is then the weighted mean Σ w_i t_i / Σ w_i, as in ``torch.nn.CrossEntropyLoss(weight=…)``.
        """
        if self._equal:
            return terms_B
        total, count = batch.shards.sums(self.weights_of(batch).sum(), batch.count())
        return terms_B * torch.where(total > 0, count / total, 0)
