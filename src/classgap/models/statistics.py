"""Mean and standard deviation of the images that pretrained weights expect."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

Statistics = tuple[tuple[float, ...], tuple[float, ...]]


def expect_images(model: nn.Module, mean: Sequence[float], std: Sequence[float]) -> None:
    """Store the expected mean and standard deviation per channel, for pixels scaled to [0, 1]."""
    object.__setattr__(model, "input_statistics", (tuple(mean), tuple(std)))


def expected_images(model: nn.Module) -> Statistics | None:
    """Return the expected mean and standard deviation, or ``None`` if unknown.

    >>> model = nn.Sequential(nn.Linear(2, 2))
    >>> expect_images(model[0], [0.5], [0.25])
    >>> expected_images(model)
    ((0.5,), (0.25,))
    """
    found = (getattr(part, "input_statistics", None) for part in model.modules())
    return next((each for each in found if each is not None), None)
