"""Mean and standard deviation of pixels, known or measured."""

from __future__ import annotations

import torch
from torch import Tensor

Channels = tuple[float, ...]
Statistics = tuple[Channels, Channels]

# Of the training images, as shares of 255.
CIFAR10: Statistics = ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))
CIFAR100: Statistics = ((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762))
SVHN: Statistics = ((0.4377, 0.4438, 0.4728), (0.1980, 0.2010, 0.1970))
IMAGENET: Statistics = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


def pixel_statistics(images: Tensor) -> Statistics:
    """Mean and standard deviation of each channel as shares of 255; a channel of one colour counts as spread by 1/255.

    Args:
        images: uint8, (N, C, H, W).

    >>> pixel_statistics(torch.tensor([0, 255], dtype=torch.uint8).view(2, 1, 1, 1))
    ((0.5,), (0.5,))
    """
    channels = images.shape[1]
    histogram = torch.zeros(channels, 256, dtype=torch.int64)
    for chunk in images.split(4096):  # exact, and a few megabytes at a time
        for channel in range(channels):
            histogram[channel] += torch.bincount(chunk[:, channel].flatten(), minlength=256)
    share = histogram.double() / histogram.sum(dim=1, keepdim=True)
    values = torch.arange(256, dtype=torch.float64) / 255
    mean = share @ values
    std = (share * (values - mean[:, None]) ** 2).sum(dim=1).sqrt().clamp(min=1 / 255)
    return tuple(mean.tolist()), tuple(std.tolist())
