"""Normalize channels, with known or measured statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Channels = tuple[float, ...]
ChannelStats = tuple[Channels, Channels]  # mean and standard deviation

# Of the training images, on the scale [0, 1].
CIFAR10: ChannelStats = ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))
CIFAR100: ChannelStats = ((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762))
MNIST: ChannelStats = ((0.1307,), (0.3081,))
SVHN: ChannelStats = ((0.4377, 0.4438, 0.4728), (0.1980, 0.2010, 0.1970))
IMAGENET: ChannelStats = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


def channel_stats(images: Tensor) -> ChannelStats:
    """Compute the mean and standard deviation of each channel on the scale [0, 1]; the latter is at least 1/255.

    Args:
        images: uint8, (N, C, H, W).

    >>> channel_stats(torch.tensor([0, 255], dtype=torch.uint8).view(2, 1, 1, 1))
    ((0.5,), (0.5,))
    """
    channels = images.shape[1]
    histogram = torch.zeros(channels, 256, dtype=torch.int64)
    for chunk in images.split(4096):  # exact, with a few megabytes at a time
        for channel in range(channels):
            histogram[channel] += torch.bincount(chunk[:, channel].flatten(), minlength=256)
    frequency = histogram.double() / histogram.sum(dim=1, keepdim=True)
    values = torch.arange(256, dtype=torch.float64) / 255
    mean = frequency @ values
    std = (frequency * (values - mean[:, None]) ** 2).sum(dim=1).sqrt().clamp(min=1 / 255)
    return tuple(mean.tolist()), tuple(std.tolist())


@dataclass(frozen=True, eq=False)
class Normalize:
    """Compute (x − mean) / std for each channel. Bytes are scaled to [0, 1] first.

    Attributes:
        scale: 1 / std, or 1 / (255 std) for bytes, (C, 1, …).
        shift: −mean / std, (C, 1, …).

    >>> image = torch.tensor([[[[0, 255]]]], dtype=torch.uint8)
    >>> Normalize.from_stats(image, mean=[0.5], std=[0.25])(image).flatten()
    tensor([-2.,  2.])
    """

    scale: Tensor | None
    shift: Tensor | None

    @classmethod
    def from_stats(cls, inputs: Tensor, mean: Sequence[float] | None, std: Sequence[float] | None) -> Normalize:
        """Create the normalization of inputs, (B, C, …).

        Args:
            inputs: Some of the inputs.
            mean: Mean of each channel, or ``None`` for 0.
            std: Standard deviation of each channel, or ``None`` for 1.
        """
        largest = 255.0 if inputs.dtype == torch.uint8 else 1.0
        if mean is None and std is None:
            return cls(torch.tensor(1 / largest) if largest > 1 else None, None)
        channels = inputs.shape[1]
        mean = [0.0] * channels if mean is None else mean
        std = [1.0] * channels if std is None else std
        for name, values in (("mean", mean), ("std", std)):
            if len(values) != channels:
                raise ValueError(f"{name} must have one value per channel ({channels}), got {len(values)}.")
        if min(std) <= 0:
            raise ValueError(f"std must be positive, got {tuple(std)}.")
        center, spread = torch.tensor([mean, std], dtype=torch.float64).view(2, -1, *[1] * (inputs.ndim - 2))
        return cls((1 / (largest * spread)).float(), (-center / spread).float())

    def __call__(self, inputs: Tensor) -> Tensor:
        """Return normalized inputs, float32."""
        values = inputs.to(torch.float32, copy=self.scale is not None)
        if self.scale is not None:
            values.mul_(self.scale)
        if self.shift is not None:
            values.add_(self.shift)
        return values
