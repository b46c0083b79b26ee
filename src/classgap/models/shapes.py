"""Checks of input shapes and sizes when a network is created."""

from __future__ import annotations

import math


def image_channels(network: str, input_shape: tuple[int, ...]) -> int:
    """Return the number of channels of an image shape.

    Raises:
        ValueError: If ``input_shape`` is not (channels, height, width).

    >>> image_channels("resnet20", (3, 32, 32))
    3
    >>> image_channels("resnet20", (40,))
    Traceback (most recent call last):
    ValueError: resnet20 requires images (channels, height, width), got input shape (40,). ...
    """
    return _channels(network, input_shape, 3, "images (channels, height, width)")


def signal_channels(network: str, input_shape: tuple[int, ...]) -> int:
    """Return the number of channels of a signal shape.

    Raises:
        ValueError: If ``input_shape`` is not (channels, length).
    """
    return _channels(network, input_shape, 2, "signals (channels, length)")


def flat_size(input_shape: tuple[int, ...]) -> int:
    """Return the number of values of an input."""
    return math.prod(input_shape)


def at_least_one(**sizes: int) -> None:
    """Require sizes of at least 1.

    >>> at_least_one(width=64, depth=0)
    Traceback (most recent call last):
    ValueError: depth must be at least 1, got 0.
    """
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} must be at least 1, got {size}.")


def _channels(network: str, input_shape: tuple[int, ...], dimensions: int, expected: str) -> int:
    if len(input_shape) != dimensions:
        raise ValueError(
            f"{network} requires {expected}, got input shape {input_shape}. mlp and linear support any shape."
        )
    return input_shape[0]
