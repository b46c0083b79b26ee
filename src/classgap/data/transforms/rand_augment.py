"""RandAugment (Cubuk et al., 2020): a few operations, chosen at random, all of one strength."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from classgap.data.sampling.keyed_random import Keys
from classgap.data.transforms.operations import NUMBERS, OPERATIONS, amounts, apply_operations

LEVELS = 31
_CHOICE = [name for name in OPERATIONS if name != "invert"]  # as torchvision's, 14 of them


@dataclass(frozen=True)
class RandAugment:
    """``n`` operations of strength ``m``.

    Args:
        n: operations one after the other.
        m: strength, from 0 to 30.

    >>> RandAugment()(torch.zeros(2, 3, 32, 32, dtype=torch.uint8), Keys(0, 0, torch.arange(2))).shape
    torch.Size([2, 3, 32, 32])
    """

    n: int = 2
    m: int = 9

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ValueError(f"n must be at least 1; got {self.n}.")
        if not 0 <= self.m < LEVELS:
            raise ValueError(f"m must be from 0 to {LEVELS - 1}; got {self.m}.")

    def __call__(self, images_BCHW: Tensor, keys: Keys) -> Tensor:
        """The images, changed."""
        number, amount, signed = _tables(self.m, *images_BCHW.shape[-2:])
        draw = keys.uniform(2 * self.n, "rand-augment")
        for i in range(self.n):
            chosen_B = (draw[:, 2 * i] * len(_CHOICE)).long()
            sign_B = torch.where(signed[chosen_B] & (draw[:, 2 * i + 1] < 0.5), -1, 1)
            images_BCHW = apply_operations(images_BCHW, number[chosen_B], amount[chosen_B] * sign_B)
        return images_BCHW


@lru_cache(maxsize=8)
def _tables(m: int, height: int, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """Of each operation that may be chosen its number, its amount and whether it has a sign."""
    amount = torch.stack([amounts(name, LEVELS, height, width)[m] for name in _CHOICE])
    signed = torch.tensor([OPERATIONS[name].signed for name in _CHOICE])
    return torch.tensor([NUMBERS[name] for name in _CHOICE]), amount, signed
