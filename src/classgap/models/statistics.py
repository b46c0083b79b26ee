"""The mean and deviation of the images that loaded weights were trained on, which new images must be scaled by."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

Statistics = tuple[tuple[float, ...], tuple[float, ...]]


def expect_images(model: nn.Module, mean: Sequence[float], std: Sequence[float]) -> None:
    """Note on a model what its weights expect: mean and standard deviation of each channel, as shares of 255."""
    object.__setattr__(model, "input_statistics", (tuple(mean), tuple(std)))


def expected_images(model: nn.Module) -> Statistics | None:
    """What a model's weights expect; ``None`` if they were not loaded, or do not tell.

    >>> model = nn.Sequential(nn.Linear(2, 2))
    >>> expect_images(model[0], [0.5], [0.25])
    >>> expected_images(model)
    ((0.5,), (0.25,))
    """
    found = (getattr(part, "input_statistics", None) for part in model.modules())
    return next((each for each in found if each is not None), None)
