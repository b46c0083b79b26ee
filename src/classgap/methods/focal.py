"""The focal losses, with the start that their sigmoid form needs."""

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
    """A focal loss. In the sigmoid form the head's bias starts at -ln(K - 1) and is not decayed, as published.

    Each class is then a yes-or-no question that starts at "yes" with probability 1/K. With a bias of 0 the K - 1
    answers "no" of every sample would dominate the first steps.

    Args:
        loss: the loss, of either form.
    """

    loss: FocalLoss

    def __init__(self, loss: FocalLoss) -> None:
        super().__init__(loss)

    @torch.no_grad()
    def prepare(self, run: TrainingRun) -> None:
        """Set the bias of the head, where there is one."""
        bias = self._bias(run)
        if bias is not None:
            bias.fill_(-math.log(max(1, run.num_classes - 1)))

    def parameter_groups(self, run: TrainingRun) -> list[dict[str, Any]]:
        """The head's bias in a group without weight decay."""
        groups, bias = super().parameter_groups(run), self._bias(run)
        if bias is None or not bias.requires_grad:
            return groups
        groups[0]["params"] = [each for each in groups[0]["params"] if each is not bias]
        return [*groups, {"params": [bias], "weight_decay": 0.0}]

    def _bias(self, run: TrainingRun) -> nn.Parameter | None:
        found = dict(run.tap.head.named_parameters()).get("bias")
        return found if self.loss.form == "sigmoid" else None


def focal(num_classes: int, *, gamma: float = 2.0, form: str = "softmax") -> Method:
    """The focal loss.

    >>> focal(10).loss.gamma
    2.0
    """
    return Focal(FocalLoss(num_classes, gamma=gamma, form=form))


def cb_focal(
    class_counts: Sequence[float] | Tensor, *, beta: float = 0.9999, gamma: float = 1.0, form: str = "sigmoid"
) -> Method:
    """The class-balanced focal loss.

    >>> cb_focal([100, 10]).loss.weight
    tensor([0.1826, 1.8174])
    """
    return Focal(ClassBalancedFocalLoss(class_counts, beta=beta, gamma=gamma, form=form))
