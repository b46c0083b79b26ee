"""Shear, translate and rotate a batch of images, with a magnitude per image.

A transform is an affine matrix that maps output pixels to input pixels, both relative to the image center. Sampling is
nearest neighbor; pixels outside the image are black.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def _matrices(a: Tensor, b: Tensor, c: Tensor, d: Tensor, e: Tensor, f: Tensor) -> Tensor:
    return torch.stack([torch.stack([a, b, c], dim=1), torch.stack([d, e, f], dim=1)], dim=1)


def shear_x(amount_B: Tensor, height: int, width: int) -> Tensor:
    """Shift rows by ``amount`` times their distance from the top."""
    one, zero = torch.ones_like(amount_B), torch.zeros_like(amount_B)
    return _matrices(one, amount_B, amount_B * (height / 2), zero, one, zero)


def shear_y(amount_B: Tensor, height: int, width: int) -> Tensor:
    """Shift columns by ``amount`` times their distance from the left."""
    one, zero = torch.ones_like(amount_B), torch.zeros_like(amount_B)
    return _matrices(one, zero, zero, amount_B, one, amount_B * (width / 2))


def translate_x(amount_B: Tensor, height: int, width: int) -> Tensor:
    """Shift to the right by an integer number of pixels."""
    one, zero = torch.ones_like(amount_B), torch.zeros_like(amount_B)
    return _matrices(one, zero, -amount_B.trunc(), zero, one, zero)


def translate_y(amount_B: Tensor, height: int, width: int) -> Tensor:
    """Shift down by an integer number of pixels."""
    one, zero = torch.ones_like(amount_B), torch.zeros_like(amount_B)
    return _matrices(one, zero, zero, zero, one, -amount_B.trunc())


def rotate(amount_B: Tensor, height: int, width: int) -> Tensor:
    """Rotate counterclockwise by degrees."""
    angle, zero = amount_B.deg2rad(), torch.zeros_like(amount_B)
    return _matrices(angle.cos(), -angle.sin(), zero, angle.sin(), angle.cos(), zero)


def warp_affine(images_BCHW: Tensor, matrix_B23: Tensor) -> Tensor:
    """Resample each image with its matrix.

    >>> image = torch.arange(1, 10, dtype=torch.uint8).view(1, 1, 3, 3)
    >>> warp_affine(image, translate_x(torch.tensor([1.0]), 3, 3))[0, 0]
    tensor([[0, 1, 2],
            [0, 4, 5],
            [0, 7, 8]], dtype=torch.uint8)
    """
    size, channels, height, width = images_BCHW.shape
    device = images_BCHW.device
    x_W = torch.arange(width, device=device) - (width - 1) / 2
    y_H = torch.arange(height, device=device)[:, None] - (height - 1) / 2
    (a, b, c), (d, e, f) = (line.unbind(1) for line in matrix_B23.float()[..., None, None].unbind(1))
    column_BHW = (a * x_W + b * y_H + (c + (width - 1) / 2)).round().long()
    row_BHW = (d * x_W + e * y_H + (f + (height - 1) / 2)).round().long()
    inside = (column_BHW >= 0) & (column_BHW < width) & (row_BHW >= 0) & (row_BHW < height)
    # Outside pixels read from one black pixel appended to each plane.
    pixel = torch.where(inside, row_BHW * width + column_BHW, height * width).view(size, 1, -1)
    planes = F.pad(images_BCHW.flatten(2), (0, 1))
    return planes.gather(2, pixel.expand(-1, channels, -1)).view_as(images_BCHW)
