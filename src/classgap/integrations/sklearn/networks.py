"""The network and the loss of a ``GapClassifier``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from numpy.typing import NDArray
from torch import nn

from classgap import methods
from classgap.losses import ClassLoss, ELMLoss, FocalLoss, MR2Loss
from classgap.methods.focal import Focal


def build_loss(method: str, class_counts_K: NDArray[Any], widths: Sequence[int], num_samples: int) -> ClassLoss:
    """Return the loss of a method.

    Args:
        method: name with options: "mr2", "elm:strength=0.1".
        class_counts_K: weight of the samples of each class.
        widths: width of the inputs and of each hidden layer.
        num_samples: number of samples.

    Raises:
        ValueError: if the method does more than replace the loss.
    """
    built = methods.build(
        method,
        num_classes=len(class_counts_K),
        class_counts=torch.from_numpy(class_counts_K),
        feature_dim=widths[-1],
        num_samples=num_samples,
    )
    if type(built) not in (methods.Method, Focal):
        raise ValueError(
            f"method must be a loss, such as 'mr2', 'elm' or 'group-dro'; {method!r} also changes the training "
            "procedure or the head. Use classgap train for it."
        )
    loss = built.loss
    if len(widths) == 1:  # a linear model: terms that pull the inputs cost time, but have no gradient
        if isinstance(loss, MR2Loss):
            loss.pulls = False
        elif isinstance(loss, ELMLoss):
            loss.strength, loss.required_inputs = 0.0, frozenset()
    return loss


def build_model(widths: Sequence[int], num_classes: int, loss: ClassLoss) -> nn.Sequential:
    """Return a linear model, or a perceptron with hidden layers.

    >>> from classgap.losses import CrossEntropyLoss
    >>> build_model([4, 8], 3, CrossEntropyLoss(3))
    Sequential(
      (0): Linear(in_features=4, out_features=8, bias=True)
      (1): ReLU()
      (2): Linear(in_features=8, out_features=3, bias=True)
    )
    """
    layers: list[nn.Module] = []
    for inside, outside in pairwise(widths):
        layers += [nn.Linear(inside, outside), nn.ReLU()]
    head = nn.Linear(widths[-1], num_classes)
    sigmoid = isinstance(loss, FocalLoss) and loss.form == "sigmoid"
    with torch.no_grad():
        if len(widths) == 1:
            head.weight.zero_()
        head.bias.fill_(-math.log(num_classes - 1) if sigmoid else 0.0)
    return nn.Sequential(*layers, head)
