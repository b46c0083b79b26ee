"""What inputs a network takes, checked when it is built."""

from __future__ import annotations

import math


def image_channels(network: str, input_shape: tuple[int, ...]) -> int:
    """The channels of images.

    Raises:
        ValueError: if ``input_shape`` is not that of an image.

    >>> image_channels("resnet20", (3, 32, 32))
    3
    >>> image_channels("resnet20", (40,))
    Traceback (most recent call last):
    ValueError: resnet20 takes images (channels, height, width); got input shape (40,). ...
    """
    return _channels(network, input_shape, 3, "images (channels, height, width)")


def signal_channels(network: str, input_shape: tuple[int, ...]) -> int:
    """The channels of signals.

    Raises:
        ValueError: if ``input_shape`` is not that of a signal.
    """
    return _channels(network, input_shape, 2, "signals (channels, length)")


def flat_size(input_shape: tuple[int, ...]) -> int:
    """How many numbers an input of any shape has."""
    return math.prod(input_shape)


def at_least_one(**sizes: int) -> None:
    """Check sizes that a user has typed.

    >>> at_least_one(width=64, depth=0)
    Traceback (most recent call last):
    ValueError: depth must be at least 1; got 0.
    """
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} must be at least 1; got {size}.")


def _channels(network: str, input_shape: tuple[int, ...], dimensions: int, what: str) -> int:
    if len(input_shape) != dimensions:
        raise ValueError(
            f"{network} takes {what}; got input shape {input_shape}. Networks for any shape are mlp and linear."
        )
    return input_shape[0]
