"""Random perspective: move the corners of each image inward, as ``torchvision.transforms.v2.RandomPerspective``."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from classgap.data.sampling.keyed_random import Keys
from classgap.data.transforms.crops import flip_where


@dataclass(frozen=True)
class RandomPerspective:
    """Distort with probability ``p``, then flip horizontally with probability 0.5.

    Each corner moves inward by a random number of pixels, up to ``distortion_scale`` of half the width and height.
    Pixels outside of the image are black.

    Args:
        distortion_scale: Largest move, from 0 to 1.
        p: Probability of distorting an image.
        flip: Whether to flip.

    >>> RandomPerspective()(torch.zeros(2, 3, 32, 32, dtype=torch.uint8), Keys(0, 0, torch.arange(2))).shape
    torch.Size([2, 3, 32, 32])
    """

    distortion_scale: float = 0.5
    p: float = 0.5
    flip: bool = True

    def __post_init__(self) -> None:
        for name in ("distortion_scale", "p"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be in [0, 1], got {getattr(self, name)}.")

    def __call__(self, images_BCHW: Tensor, keys: Keys) -> Tensor:
        """Return the distorted and flipped images."""
        height, width = images_BCHW.shape[-2:]
        draw = keys.uniform(10, "perspective")
        corners_B42 = random_corners(draw[:, :8], height, width, self.distortion_scale)
        chosen = (draw[:, 8] < self.p).tolist()
        images = [
            warp_perspective(image_CHW, perspective_coefficients(corners_42, height, width)) if distorted else image_CHW
            for image_CHW, corners_42, distorted in zip(images_BCHW, corners_B42, chosen, strict=True)
        ]
        images_BCHW = torch.stack(images) if images else images_BCHW
        return flip_where(images_BCHW, draw[:, 9] < 0.5) if self.flip else images_BCHW


def random_corners(draw: Tensor, height: int, width: int, distortion_scale: float) -> Tensor:
    """Return the (x, y) positions to which the corners move, (B, 4, 2), clockwise from the top left.

    Args:
        draw: Uniform random numbers, (B, 8).
        height: Image height.
        width: Image width.
        distortion_scale: Largest move as a fraction of half the width and height.

    >>> random_corners(torch.zeros(1, 8), 4, 6, 0.5)[0].tolist()
    [[0, 0], [5, 0], [5, 3], [0, 3]]
    """
    bounds = draw.new_tensor([int(distortion_scale * (side // 2)) + 1 for side in (width, height)])
    moves_B42 = (draw.view(-1, 4, 2) * bounds).long()
    return _corners(height, width) + moves_B42 * torch.tensor([[1, 1], [-1, 1], [-1, -1], [1, -1]])


def perspective_coefficients(corners_42: Tensor, height: int, width: int) -> Tensor:
    """Return a, …, h of the map from an output to an input pixel, (8,), float64.

        (x, y)  →  ((a x + b y + c) / w, (d x + e y + f) / w),      w = g x + h y + 1

    It maps the moved corners to the corners of the image.

    Args:
        corners_42: Positions of the moved corners.
        height: Image height.
        width: Image width.
    """
    x, y = corners_42.double().unbind(1)
    u, v = _corners(height, width).double().unbind(1)
    one, zero = torch.ones_like(x), torch.zeros_like(x)
    upper = torch.stack([x, y, one, zero, zero, zero, -u * x, -u * y], dim=1)
    lower = torch.stack([zero, zero, zero, x, y, one, -v * x, -v * y], dim=1)
    return torch.linalg.solve(torch.cat([upper, lower]), torch.cat([u, v]))


def warp_perspective(image_CHW: Tensor, coefficients: Tensor) -> Tensor:
    """Resample a uint8 image, bilinear; pixels have their centers at half-integers.

    >>> identity = torch.tensor([1, 0, 0, 0, 1, 0, 0, 0], dtype=torch.float64)
    >>> warp_perspective(torch.tensor([[[1, 2], [3, 4]]], dtype=torch.uint8), identity).flatten()
    tensor([1, 2, 3, 4], dtype=torch.uint8)
    """
    height, width = image_CHW.shape[-2:]
    a, b, c, d, e, f, g, h = coefficients.tolist()
    x_W = torch.arange(width, dtype=torch.float64) + 0.5
    y_H = torch.arange(height, dtype=torch.float64)[:, None] + 0.5
    scale_HW = g * x_W + h * y_H + 1
    # grid_sample takes positions from -1 to 1, edge to edge.
    column_HW = (a * x_W + b * y_H + c) / scale_HW * (2 / width) - 1
    row_HW = (d * x_W + e * y_H + f) / scale_HW * (2 / height) - 1
    grid_HW2 = torch.stack([column_HW, row_HW], dim=-1).float()
    warped = F.grid_sample(image_CHW[None].float(), grid_HW2[None], mode="bilinear", align_corners=False)
    return warped[0].round_().byte()


def _corners(height: int, width: int) -> Tensor:
    return torch.tensor([[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]])
