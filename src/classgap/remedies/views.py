"""Test-time augmentation: average the probabilities of several views of each image."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from classgap.remedies.modules import PARTS, Part, build_part, describe_part

VIEWS = {"mirror": 2, "ten-views": 10}  # each set contains the smaller one
SHIFTS = ((0, 0), (-1, 0), (1, 0), (0, -1), (0, 1))  # rows and columns, in units of ``shift``


def shift_size(input_shape: tuple[int, ...]) -> int:
    """Return the shift of a view in pixels: a 32nd of the shorter side, at least 1.

    >>> shift_size((3, 32, 32)), shift_size((1, 8, 8)), shift_size((3, 224, 224))
    (1, 1, 7)
    """
    return max(1, min(input_shape[1:]) // 32)


def iterate_views(images_BCHW: Tensor, shift: int) -> Iterator[Tensor]:
    """Yield ten views: the images, their mirror images, and both shifted up, down, left and right.

    The border is reflected where an image is shifted away from it.

    >>> views = list(iterate_views(torch.arange(4.0).view(1, 1, 2, 2), 1))
    >>> len(views), views[1].flatten().tolist()
    (10, [1.0, 0.0, 3.0, 2.0])
    """
    height, width = images_BCHW.shape[-2:]
    padded = F.pad(images_BCHW, (shift,) * 4, mode="reflect")
    for rows, columns in SHIFTS:
        top, left = shift * (1 + rows), shift * (1 + columns)
        view = padded[..., top : top + height, left : left + width]
        yield view
        yield view.flip(-1)


class Views(Part):
    """Average the probabilities of views of each image: log of the mean softmax.

    Args:
        network: maps images (B, C, H, W) to logits (B, K).
        views: "mirror" (the image and its mirror image) or "ten-views" (both, and both shifted in four directions).
        shift: size of a shift in pixels.

    >>> from classgap.remedies.networks import Network
    >>> config = {"model": "mlp:width=4", "num_classes": 2, "input_shape": [1, 4, 4], "head": "linear"}
    >>> mirror = Views(Network.from_config(config), "mirror", 1)
    >>> images = torch.arange(16.0).view(1, 1, 4, 4)
    >>> torch.allclose(mirror(images), mirror(images.flip(-1)))
    True
    """

    def __init__(self, network: Part, views: str, shift: int) -> None:
        super().__init__()
        self.network, self.views, self.shift = network, views, shift
        self.eval()

    def forward(self, images_BCHW: Tensor) -> Tensor:
        """Return log-probabilities (B, K)."""
        views = zip(range(VIEWS[self.views]), iterate_views(images_BCHW, self.shift), strict=False)
        mean = torch.stack([self.network(view).softmax(dim=1) for _, view in views]).mean(dim=0)
        return mean.clamp(min=torch.finfo(mean.dtype).tiny).log()

    def config(self) -> dict[str, Any]:
        """Return the set of views and the configuration of the network."""
        return {"views": self.views, "shift": self.shift, "network": describe_part(self.network)}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Build the network."""
        return cls(build_part(config["network"]), config["views"], int(config["shift"]))


PARTS["Views"] = Views
