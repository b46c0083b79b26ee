"""Crop and flip a batch of uint8 images, each at its own position.

Shapes: B images, C channels, H rows, W columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from classgap.data.sampling.keyed_random import Keys

if TYPE_CHECKING:
    from classgap.data.sources.original_images import OriginalImages

_TRIES = 10
_RATIO = (3 / 4, 4 / 3)
INTERPOLATIONS = ("bilinear", "bicubic")


@dataclass(frozen=True)
class CropFlip:
    """Pad, crop to the original size at a random position, and flip horizontally with probability 0.5.

    The usual augmentation for CIFAR.

    Args:
        padding: Pixels on each side.
        padding_mode: "constant" (zeros, as in the papers on CIFAR) or "reflect".
        flip: Whether to flip; not for digits.

    >>> CropFlip()(torch.zeros(2, 3, 32, 32, dtype=torch.uint8), Keys(0, 0, torch.arange(2))).shape
    torch.Size([2, 3, 32, 32])
    """

    padding: int = 4
    padding_mode: str = "constant"
    flip: bool = True

    def __post_init__(self) -> None:
        if self.padding < 0:
            raise ValueError(f"padding must be at least 0, got {self.padding}.")
        if self.padding_mode not in ("constant", "reflect"):
            raise ValueError(f"padding_mode must be constant or reflect, got {self.padding_mode!r}.")

    def __call__(self, images_BCHW: Tensor, keys: Keys) -> Tensor:
        """Return the cropped and flipped images."""
        height, width = images_BCHW.shape[-2:]
        draw = keys.uniform(3, "crop-flip")
        top_B, left_B = (draw[:, :2] * (2 * self.padding + 1)).long().unbind(1)
        if self.padding:
            reflect = self.padding_mode == "reflect"
            padded = reflect_pad(images_BCHW, self.padding) if reflect else F.pad(images_BCHW, (self.padding,) * 4)
            images_BCHW = crop_windows(padded, top_B, left_B, height, width)
        return flip_where(images_BCHW, draw[:, 2] < 0.5) if self.flip else images_BCHW


def crop_windows(images_BCHW: Tensor, top_B: Tensor, left_B: Tensor, height: int, width: int) -> Tensor:
    """Crop a window of one size from each image, at its own position.

    Lines of pixels are contiguous in memory. Selecting lines from a strided view in which every pixel starts a line is
    five times as fast as selecting pixels.

    >>> crop_windows(torch.arange(9).view(1, 1, 3, 3), torch.tensor([1]), torch.tensor([0]), 2, 2)
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


def flip_where(images_BCHW: Tensor, flip_B: Tensor) -> Tensor:
    """Flip the selected images horizontally.

    >>> flip_where(torch.arange(4).view(2, 1, 1, 2), torch.tensor([False, True])).flatten()
    tensor([0, 1, 3, 2])
    """
    # Flipping all images and selecting is faster than writing into the selected ones.
    both = torch.cat([images_BCHW, images_BCHW.flip(-1)])
    size = len(images_BCHW)
    return both.index_select(0, torch.arange(size, device=flip_B.device) + flip_B * size)


def reflect_pad(images_BCHW: Tensor, padding: int) -> Tensor:
    """Pad by reflection; torch's reflection padding does not support uint8.

    >>> reflect_pad(torch.tensor([[[[1, 2, 3]] * 2]]), 1)[0, 0, 0]
    tensor([2, 1, 2, 3, 2])
    """
    for dim in (-2, -1):
        length = images_BCHW.shape[dim]
        if padding >= length:
            raise ValueError(f"padding must be less than the image size, {length}, to reflect, got {padding}.")
        position = torch.arange(-padding, length + padding, device=images_BCHW.device).abs()
        images_BCHW = images_BCHW.index_select(dim, torch.minimum(position, 2 * (length - 1) - position))
    return images_BCHW


def center_crop(images_BCHW: Tensor, size: int) -> Tensor:
    """Crop the central square.

    >>> center_crop(torch.arange(16).view(1, 1, 4, 4), 2).flatten()
    tensor([ 5,  6,  9, 10])
    """
    height, width = images_BCHW.shape[-2:]
    if size > min(height, width):
        raise ValueError(f"size must be at most the image size, {height}×{width}, got {size}.")
    top, left = round((height - size) / 2), round((width - size) / 2)
    return images_BCHW[..., top : top + size, left : left + size]


@dataclass(frozen=True)
class RandomResizedCrop:
    """Crop a random area and aspect ratio, resize, and flip horizontally with probability 0.5.

    The usual augmentation for ImageNet.

    Args:
        size: Side of the resized square crops. Defaults to the height and width of the stored images, which are also
            used for testing.
        scale: Smallest crop area as a fraction of the image area; the largest is 1.
        flip: Whether to flip.
        interpolation: "bilinear" or "bicubic", both with antialiasing.

    >>> images = torch.zeros(2, 3, 48, 64, dtype=torch.uint8)
    >>> RandomResizedCrop(size=32)(images, Keys(0, 0, torch.arange(2))).shape
    torch.Size([2, 3, 32, 32])
    """

    size: int | None = None
    scale: float = 0.08
    flip: bool = True
    interpolation: str = "bilinear"

    def __post_init__(self) -> None:
        if self.interpolation not in INTERPOLATIONS:
            raise ValueError(f"interpolation must be {' or '.join(INTERPOLATIONS)}, got {self.interpolation!r}.")
        if not 0 < self.scale <= 1:
            raise ValueError(f"scale must be in (0, 1], got {self.scale}.")
        if self.size is not None and self.size < 1:
            raise ValueError(f"size must be at least 1, got {self.size}.")

    def __call__(self, images_BCHW: Tensor, keys: Keys) -> Tensor:
        """Return the cropped, resized and flipped images."""
        height, width = images_BCHW.shape[-2:]
        size = (height, width) if self.size is None else (self.size, self.size)
        draw = self._draw(keys)
        boxes_B4 = random_boxes(draw[:, :-1], height, width, self.scale)
        crops = [self._cut(image_CHW, box, size) for image_CHW, box in zip(images_BCHW, boxes_B4.tolist(), strict=True)]
        return self._flip(torch.stack(crops), draw)

    def crop_originals(self, images: OriginalImages, rows: Tensor, keys: Keys) -> Tensor:
        """Return crops of image files, each of its own size.

        Args:
            images: The files.
            rows: Rows of the files, (B,).
            keys: Keys of the samples.
        """
        size = (images.height, images.width) if self.size is None else (self.size, self.size)
        draw = self._draw(keys)

        def cut(position: int, image_CHW: Tensor) -> Tensor:
            height, width = image_CHW.shape[-2:]
            box_14 = random_boxes(draw[position : position + 1, :-1], height, width, self.scale)
            return self._cut(image_CHW, box_14[0].tolist(), size)

        return self._flip(images.map_originals(rows, cut), draw)

    def _draw(self, keys: Keys) -> Tensor:
        return keys.uniform(2 * _TRIES + 3, "resized crop")

    def _cut(self, image_CHW: Tensor, box: Sequence[int], size: tuple[int, int]) -> Tensor:
        top, left, high, wide = box
        return resize(image_CHW[:, top : top + high, left : left + wide], size, self.interpolation)

    def _flip(self, images_BCHW: Tensor, draw: Tensor) -> Tensor:
        return flip_where(images_BCHW, draw[:, -1] < 0.5) if self.flip else images_BCHW


def random_boxes(draw: Tensor, height: int, width: int, scale: float) -> Tensor:
    """Return top, left, height and width of crops, (B, 4): the first of ten tries that fits, else a center crop.

    Args:
        draw: Uniform random numbers, (B, 22): ten areas, ten aspect ratios, two positions.
        height: Image height.
        width: Image width.
        scale: Smallest crop area as a fraction of the image area.
    """
    area = (scale + draw[:, :_TRIES] * (1 - scale)) * (height * width)
    low, high = math.log(_RATIO[0]), math.log(_RATIO[1])
    ratio = (low + draw[:, _TRIES : 2 * _TRIES] * (high - low)).exp()
    wide, tall = (area * ratio).sqrt().round(), (area / ratio).sqrt().round()
    # The fallback is the largest center crop with an allowed aspect ratio.
    own = min(max(width / height, _RATIO[0]), _RATIO[1])
    fallback = draw.new_tensor([min(width, round(height * own)), min(height, round(width / own))])
    wide, tall = (
        torch.cat([values, last.expand(len(draw), 1)], dim=1)
        for values, last in ((wide, fallback[0]), (tall, fallback[1]))
    )
    fits = (wide >= 1) & (wide <= width) & (tall >= 1) & (tall <= height)
    first = fits.byte().argmax(dim=1, keepdim=True)
    wide_B, tall_B = wide.gather(1, first)[:, 0], tall.gather(1, first)[:, 0]
    position = torch.where(first < _TRIES, draw[:, 2 * _TRIES :], 0.5)
    top_B, left_B = (position[:, 0] * (height - tall_B + 1)).floor(), (position[:, 1] * (width - wide_B + 1)).floor()
    return torch.stack([top_B, left_B, tall_B, wide_B], dim=1).long()


def resize(image_CHW: Tensor, size: tuple[int, int], interpolation: str = "bilinear") -> Tensor:
    """Resize a uint8 image, "bilinear" or "bicubic", with antialiasing.

    >>> resize(torch.full((3, 5, 9), 7, dtype=torch.uint8), (4, 6)).shape
    torch.Size([3, 4, 6])
    """
    return F.interpolate(image_CHW[None], size, mode=interpolation, antialias=True, align_corners=False)[0]
