"""A network whose features have any scale and whose function does not depend on it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from classgap.models import build


class Scaled(nn.Module):
    """Features times a number."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, features_BD: Tensor) -> Tensor:
        return self.scale * features_BD


def scaled_mlp(*, num_classes: int, input_shape: tuple[int, ...], scale: float = 1.0) -> nn.Module:
    """``mlp``, the same function whatever the scale of its features: what the features gain, the last layer loses."""
    *hidden, head = build("mlp", num_classes=num_classes, input_shape=input_shape)
    with torch.no_grad():
        head.weight /= scale
    return nn.Sequential(*hidden, Scaled(scale), head)
