"""Focal losses, with the bias initialization of their sigmoid form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from classgap.losses.class_balanced_focal import ClassBalancedFocalLoss
from classgap.losses.focal import FocalLoss
from classgap.methods.method import Method

if TYPE_CHECKING:
    from classgap.methods.protocol import TrainingRun


class Focal(Method):
    """A focal loss. The sigmoid form initializes the head's bias to -ln(K - 1) without weight decay, as published.

    Each binary classifier then starts at a probability of 1/K. With a bias of 0, the K - 1 negatives of each sample
    would dominate the first steps.

    Args:
        loss: Focal loss in either form.
    """

    loss: FocalLoss

    def __init__(self, loss: FocalLoss) -> None:
        super().__init__(loss)

    @torch.no_grad()
    def prepare(self, run: TrainingRun) -> None:
        """Initialize the bias of the head, if it has one."""
        bias = self._bias(run)
        if bias is not None:
            bias.fill_(-math.log(max(1, run.num_classes - 1)))

    def parameter_groups(self, run: TrainingRun) -> list[dict[str, Any]]:
        """Put the bias of the head into a group without weight decay."""
        groups, bias = super().parameter_groups(run), self._bias(run)
        if bias is None or not bias.requires_grad:
            return groups
        groups[0]["params"] = [each for each in groups[0]["params"] if each is not bias]
        return [*groups, {"params": [bias], "weight_decay": 0.0}]

    def _bias(self, run: TrainingRun) -> nn.Parameter | None:
        found = dict(run.tap.head.named_parameters()).get("bias")
        return found if self.loss.form == "sigmoid" else None


def focal(num_classes: int, *, gamma: float = 2.0, form: str = "softmax") -> Method:
    """Create a focal loss.

    >>> focal(10).loss.gamma
    2.0
    """
    return Focal(FocalLoss(num_classes, gamma=gamma, form=form))


def cb_focal(
    class_counts: Sequence[float] | Tensor, *, beta: float = 0.9999, gamma: float = 1.0, form: str = "sigmoid"
) -> Method:
    """Create a class-balanced focal loss.

    >>> cb_focal([100, 10]).loss.weight
    tensor([0.1826, 1.8174])
    """
    return Focal(ClassBalancedFocalLoss(class_counts, beta=beta, gamma=gamma, form=form))
