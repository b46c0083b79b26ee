"""Small networks for signals, vectors and features."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import nn

from classgap.models.shapes import at_least_one, flat_size, signal_channels


def conv1d(*, num_classes: int, input_shape: tuple[int, ...], width: int = 64) -> nn.Module:
    """Create three 1-D convolutions (kernel 5, stride 2) with batch norm and ReLU, average pooling and a linear layer.

    Args:
        num_classes: Number of outputs.
        input_shape: Shape of one input.
        width: Number of channels of each convolution.

    >>> conv1d(num_classes=10, input_shape=(1, 40))[-1]
    Linear(in_features=64, out_features=10, bias=True)
    """
    at_least_one(width=width)
    layers: list[nn.Module] = []
    for inside in (signal_channels("conv1d", input_shape), width, width):
        layers += [nn.Conv1d(inside, width, 5, stride=2, padding=2), nn.BatchNorm1d(width), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(width, num_classes))


def mlp(*, num_classes: int, input_shape: tuple[int, ...], width: int = 256, depth: int = 1) -> nn.Module:
    """Create ``depth`` hidden layers of ``width`` units with ReLU and a linear layer, on flattened inputs.

    Args:
        num_classes: Number of outputs.
        input_shape: Shape of one input.
        width: Number of units of each hidden layer.
        depth: Number of hidden layers.

    >>> [type(layer).__name__ for layer in mlp(num_classes=3, input_shape=(8,), width=4)]
    ['Flatten', 'Linear', 'ReLU', 'Linear']
    """
    at_least_one(width=width, depth=depth)
    return nn.Sequential(*_hidden([flat_size(input_shape), *[width] * depth]), nn.Linear(width, num_classes))


def linear(*, num_classes: int, input_shape: tuple[int, ...]) -> nn.Module:
    """Create a linear layer on flattened inputs, for linear probing of features.

    >>> linear(num_classes=3, input_shape=(8,))[-1]
    Linear(in_features=8, out_features=3, bias=True)
    """
    return nn.Sequential(nn.Flatten(), nn.Linear(flat_size(input_shape), num_classes))


def elm_mlp(*, num_classes: int, input_shape: tuple[int, ...]) -> nn.Module:
    """Create the network of ELM, Section 2.3: hidden layers of 16, 8 and 2 units, the last one for plots.

    The layer of 2 units has no ReLU, which the paper leaves open. With a ReLU, these units die on two moons with 5 % of
    the samples in the tail (9 of 20 seeds never predict the tail), where the paper reports near perfect accuracy.

    >>> [layer.out_features for layer in elm_mlp(num_classes=2, input_shape=(2,)) if hasattr(layer, "out_features")]
    [16, 8, 2, 2]
    """
    *hidden, _ = _hidden([flat_size(input_shape), 16, 8, 2])
    return nn.Sequential(*hidden, nn.Linear(2, num_classes))


def _hidden(widths: Sequence[int]) -> list[nn.Module]:
    layers: list[nn.Module] = [nn.Flatten()]
    for inside, outside in pairwise(widths):
        layers += [nn.Linear(inside, outside), nn.ReLU()]
    return layers
