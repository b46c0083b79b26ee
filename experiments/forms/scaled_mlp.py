"""A network with scaled features and an unchanged function."""

from __future__ import annotations

from stress_strength import stressed  # of benchmarks/
from torch import nn


def scaled_mlp(*, num_classes: int, input_shape: tuple[int, ...], scale: float = 1.0) -> nn.Module:
    """Build ``mlp`` with scaled features and an inversely scaled last layer."""
    return stressed(num_classes=num_classes, input_shape=input_shape, scale=scale, batch_norm=False)
