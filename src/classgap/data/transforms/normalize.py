"""Inputs of the scale that networks like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Normalize:
    """(x − mean) / std of each channel, where bytes first become shares of 255.

    Attributes:
        scale: 1 / std, or 1 / (255 std) for bytes; (C, 1, …).
        shift: −mean / std.

    >>> image = torch.tensor([[[[0, 255]]]], dtype=torch.uint8)
    >>> Normalize.from_stats(image, mean=[0.5], std=[0.25])(image).flatten()
    tensor([-2.,  2.])
    """

    scale: Tensor | None
    shift: Tensor | None

    @classmethod
    def from_stats(cls, inputs: Tensor, mean: Sequence[float] | None, std: Sequence[float] | None) -> Normalize:
        """What suits inputs like these, (B, C, …).

        Args:
            inputs: some of them.
            mean: of each channel, or ``None`` for 0.
            std: of each channel, or ``None`` for 1.
        """
        largest = 255.0 if inputs.dtype == torch.uint8 else 1.0
        if mean is None and std is None:
            return cls(torch.tensor(1 / largest) if largest > 1 else None, None)
        channels = inputs.shape[1]
        mean = [0.0] * channels if mean is None else mean
        std = [1.0] * channels if std is None else std
        for name, values in (("mean", mean), ("std", std)):
            if len(values) != channels:
                raise ValueError(f"{name} must be one number for each of {channels} channels; got {len(values)}.")
        if min(std) <= 0:
            raise ValueError(f"std must be above 0; got {tuple(std)}.")
        centre, spread = torch.tensor([mean, std], dtype=torch.float64).view(2, -1, *[1] * (inputs.ndim - 2))
        return cls((1 / (largest * spread)).float(), (-centre / spread).float())

    def __call__(self, inputs: Tensor) -> Tensor:
        """The inputs as float32."""
        values = inputs.to(torch.float32, copy=self.scale is not None)
        if self.scale is not None:
            values.mul_(self.scale)
        if self.shift is not None:
            values.add_(self.shift)
        return values
