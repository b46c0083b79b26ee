"""Crops and flips of a whole batch of uint8 images, with a place for each image.

Shapes: B images, C channels, H rows, W columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from classgap.data.sampling.keyed_random import Keys

_TRIES = 10
_RATIO = (3 / 4, 4 / 3)


@dataclass(frozen=True)
class CropFlip:
    """Pad, crop back to the old size at a random place, and flip every second image: the CIFAR augmentation.

    Args:
        pad: pixels on each side.
        mode: what is there: "zero", as in the papers on CIFAR, or "reflect".
        flip: also left and right; not for digits.

    >>> CropFlip()(torch.zeros(2, 3, 32, 32, dtype=torch.uint8), Keys(0, 0, torch.arange(2))).shape
    torch.Size([2, 3, 32, 32])
    """

    pad: int = 4
    mode: str = "zero"
    flip: bool = True

    def __post_init__(self) -> None:
        if self.pad < 0:
            raise ValueError(f"pad must be at least 0; got {self.pad}.")
        if self.mode not in ("zero", "reflect"):
            raise ValueError(f"mode must be zero or reflect; got {self.mode!r}.")

    def __call__(self, images_BCHW: Tensor, keys: Keys) -> Tensor:
        """The images, cropped and flipped."""
        height, width = images_BCHW.shape[-2:]
        draw = keys.uniform(3, "crop-flip")
        top_B, left_B = (draw[:, :2] * (2 * self.pad + 1)).long().unbind(1)
        if self.pad:
            padded = F.pad(images_BCHW, (self.pad,) * 4) if self.mode == "zero" else reflected(images_BCHW, self.pad)
            images_BCHW = windows(padded, top_B, left_B, height, width)
        return flipped(images_BCHW, draw[:, 2] < 0.5) if self.flip else images_BCHW


def windows(images_BCHW: Tensor, top_B: Tensor, left_B: Tensor, height: int, width: int) -> Tensor:
    """Of each image the window of one size at its own place.

    Lines of pixels are contiguous in memory, so a window is a list of line beginnings: selecting lines from a view in
    which *every* pixel begins one copies whole lines, five times as fast as selecting pixels.

    >>> windows(torch.arange(9).view(1, 1, 3, 3), torch.tensor([1]), torch.tensor([0]), 2, 2)
    tensor([[[[3, 4],
              [6, 7]]]])
    """
    size, channels, high, wide = images_BCHW.shape
    flat = images_BCHW.contiguous().view(-1)
    lines = flat.as_strided((flat.numel() - width + 1, width), (1, 1))
    device = images_BCHW.device
    planes_BC = torch.arange(size * channels, device=device).view(size, channels) * (high * wide)
    start_BC = planes_BC + (top_B * wide + left_B)[:, None]
    start_BCh = start_BC[:, :, None] + torch.arange(height, device=device) * wide
    return lines.index_select(0, start_BCh.view(-1)).view(size, channels, height, width)


def flipped(images_BCHW: Tensor, flip_B: Tensor) -> Tensor:
    """Some of the images flipped left to right.

    >>> flipped(torch.arange(4).view(2, 1, 1, 2), torch.tensor([False, True])).flatten()
    tensor([0, 1, 3, 2])
    """
    # Flipping all and choosing whole images beats writing into those that are flipped.
    both = torch.cat([images_BCHW, images_BCHW.flip(-1)])
    size = len(images_BCHW)
    return both.index_select(0, torch.arange(size, device=flip_B.device) + flip_B * size)


def reflected(images_BCHW: Tensor, pad: int) -> Tensor:
    """The images with mirrored borders; torch's own padding takes no uint8.

    >>> reflected(torch.tensor([[[[1, 2, 3]] * 2]]), 1)[0, 0, 0]
    tensor([2, 1, 2, 3, 2])
    """
    for dim in (-2, -1):
        length = images_BCHW.shape[dim]
        if pad >= length:
            raise ValueError(f"pad must be less than the image's {length} pixels to reflect; got {pad}.")
        place = torch.arange(-pad, length + pad, device=images_BCHW.device).abs()
        images_BCHW = images_BCHW.index_select(dim, torch.minimum(place, 2 * (length - 1) - place))
    return images_BCHW


def centre(images_BCHW: Tensor, size: int) -> Tensor:
    """The middle square.

    >>> centre(torch.arange(16).view(1, 1, 4, 4), 2).flatten()
    tensor([ 5,  6,  9, 10])
    """
    height, width = images_BCHW.shape[-2:]
    if size > min(height, width):
        raise ValueError(f"size must be at most the images' {height} by {width}; got {size}.")
    top, left = round((height - size) / 2), round((width - size) / 2)
    return images_BCHW[..., top : top + size, left : left + size]


@dataclass(frozen=True)
class RandomResizedCrop:
    """A crop of random area and shape, resized, and every second image flipped: the ImageNet augmentation.

    Args:
        size: side of the square that crops become; by default they become as high and wide as the stored images, which
            is what the network is tested on.
        scale: smallest share of the image's area; the largest is all of it.
        flip: also left and right.

    >>> images = torch.zeros(2, 3, 48, 64, dtype=torch.uint8)
    >>> RandomResizedCrop(size=32)(images, Keys(0, 0, torch.arange(2))).shape
    torch.Size([2, 3, 32, 32])
    """

    size: int | None = None
    scale: float = 0.08
    flip: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.scale <= 1:
            raise ValueError(f"scale must be above 0 and at most 1; got {self.scale}.")
        if self.size is not None and self.size < 1:
            raise ValueError(f"size must be at least 1; got {self.size}.")

    def __call__(self, images_BCHW: Tensor, keys: Keys) -> Tensor:
        """The images, cropped, resized and flipped."""
        height, width = images_BCHW.shape[-2:]
        size = (height, width) if self.size is None else (self.size, self.size)
        draw = keys.uniform(2 * _TRIES + 3, "resized crop")
        boxes_B4 = random_boxes(draw[:, :-1], height, width, self.scale)
        crops = [
            resized(image_CHW[:, top : top + high, left : left + wide], size)
            for image_CHW, (top, left, high, wide) in zip(images_BCHW, boxes_B4.tolist(), strict=True)
        ]
        images_BCHW = torch.stack(crops)
        return flipped(images_BCHW, draw[:, -1] < 0.5) if self.flip else images_BCHW


def random_boxes(draw: Tensor, height: int, width: int, scale: float) -> Tensor:
    """Top, left, height and width of crops, (B, 4): the first of ten tries that fits, else the middle.

    Args:
        draw: uniform numbers, (B, 22): ten areas, ten shapes, two places.
        height: of the images.
        width: of the images.
        scale: smallest share of the area.
    """
    area = (scale + draw[:, :_TRIES] * (1 - scale)) * (height * width)
    low, high = math.log(_RATIO[0]), math.log(_RATIO[1])
    ratio = (low + draw[:, _TRIES : 2 * _TRIES] * (high - low)).exp()
    wide, tall = (area * ratio).sqrt().round(), (area / ratio).sqrt().round()
    # The last resort is the largest middle part of an allowed shape.
    own = min(max(width / height, _RATIO[0]), _RATIO[1])
    middle = draw.new_tensor([min(width, round(height * own)), min(height, round(width / own))])
    wide, tall = (
        torch.cat([values, last.expand(len(draw), 1)], dim=1) for values, last in ((wide, middle[0]), (tall, middle[1]))
    )
    fits = (wide >= 1) & (wide <= width) & (tall >= 1) & (tall <= height)
    first = fits.byte().argmax(dim=1, keepdim=True)
    wide_B, tall_B = wide.gather(1, first)[:, 0], tall.gather(1, first)[:, 0]
    place = torch.where(first < _TRIES, draw[:, 2 * _TRIES :], 0.5)
    top_B, left_B = (place[:, 0] * (height - tall_B + 1)).floor(), (place[:, 1] * (width - wide_B + 1)).floor()
    return torch.stack([top_B, left_B, tall_B, wide_B], dim=1).long()


def resized(image_CHW: Tensor, size: tuple[int, int]) -> Tensor:
    """A uint8 image in another height and width, bilinear with anti-aliasing.

    >>> resized(torch.full((3, 5, 9), 7, dtype=torch.uint8), (4, 6)).shape
    torch.Size([3, 4, 6])
    """
    return F.interpolate(image_CHW[None], size, mode="bilinear", antialias=True, align_corners=False)[0]
