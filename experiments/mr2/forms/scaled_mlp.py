"""A network whose features have any scale and whose function does not depend on it."""

from __future__ import annotations

from stress_strength import stressed  # of benchmarks/
from torch import nn


def scaled_mlp(*, num_classes: int, input_shape: tuple[int, ...], scale: float = 1.0) -> nn.Module:
    """``mlp``, the same function whatever the scale of its features: what the features gain, the last layer loses."""
    return stressed(num_classes=num_classes, input_shape=input_shape, scale=scale, batch_norm=False)
