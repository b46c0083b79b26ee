"""RandAugment (Cubuk et al., 2020): a few random operations of one magnitude."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from classgap.data.sampling.keyed_random import Keys
from classgap.data.transforms.operations import OPERATION_INDEX, OPERATIONS, apply_operations, magnitudes

LEVELS = 31
_CHOICES = [name for name in OPERATIONS if name != "invert"]  # torchvision's 14 operations


@dataclass(frozen=True)
class RandAugment:
    """Apply ``n`` random operations of magnitude ``m``.

    Args:
        n: Number of operations in sequence.
        m: Magnitude level, from 0 to 30.

    >>> RandAugment()(torch.zeros(2, 3, 32, 32, dtype=torch.uint8), Keys(0, 0, torch.arange(2))).shape
    torch.Size([2, 3, 32, 32])
    """

    n: int = 2
    m: int = 9

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ValueError(f"n must be at least 1, got {self.n}.")
        if not 0 <= self.m < LEVELS:
            raise ValueError(f"m must be in [0, {LEVELS - 1}], got {self.m}.")

    def __call__(self, images_BCHW: Tensor, keys: Keys) -> Tensor:
        """Return the augmented images."""
        index, magnitude, signed = _make_tables(self.m, *images_BCHW.shape[-2:])
        draw = keys.uniform(2 * self.n, "rand-augment")
        for i in range(self.n):
            chosen_B = (draw[:, 2 * i] * len(_CHOICES)).long()
            sign_B = torch.where(signed[chosen_B] & (draw[:, 2 * i + 1] < 0.5), -1, 1)
            images_BCHW = apply_operations(images_BCHW, index[chosen_B], magnitude[chosen_B] * sign_B)
        return images_BCHW


@lru_cache(maxsize=8)
def _make_tables(m: int, height: int, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """Index, magnitude and whether the magnitude is signed, of each operation to choose from."""
    magnitude = torch.stack([magnitudes(name, LEVELS, height, width)[m] for name in _CHOICES])
    signed = torch.tensor([OPERATIONS[name].signed for name in _CHOICES])
    return torch.tensor([OPERATION_INDEX[name] for name in _CHOICES]), magnitude, signed
