"""AutoAugment (Cubuk et al., 2019): apply one of 25 learned sub-policies to each image."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from classgap.data.sampling.keyed_random import Keys
from classgap.data.transforms.operations import OPERATION_INDEX, OPERATIONS, apply_operations, magnitudes

LEVELS = 10

# The paper's Tables 7 (CIFAR-10) and 9 (ImageNet): operation, probability in tenths, level. The level of an operation
# without magnitude is 0.
POLICIES: dict[str, str] = {
    "cifar10": """
        invert 1 0, contrast 2 6;        rotate 7 2, translate-x 3 9;      sharpness 8 1, sharpness 9 3
        shear-y 5 8, translate-y 7 9;    autocontrast 5 0, equalize 9 0;   shear-y 2 7, posterize 3 7
        color 4 3, brightness 6 7;       sharpness 3 9, brightness 7 9;    equalize 6 0, equalize 5 0
        contrast 6 7, sharpness 6 5;     color 7 7, translate-x 5 8;       equalize 3 0, autocontrast 4 0
        translate-y 4 3, sharpness 2 6;  brightness 9 6, color 2 8;        solarize 5 2, invert 0 0
        equalize 2 0, autocontrast 6 0;  equalize 2 0, equalize 6 0;       color 9 9, equalize 6 0
        autocontrast 8 0, solarize 2 8;  brightness 1 3, color 7 0;        solarize 4 5, autocontrast 9 0
        translate-y 9 9, translate-y 7 9; autocontrast 9 0, solarize 8 3;  equalize 8 0, invert 1 0
        translate-y 7 9, autocontrast 9 0
    """,
    "imagenet": """
        posterize 4 8, rotate 6 9;       solarize 6 5, autocontrast 6 0;   equalize 8 0, equalize 6 0
        posterize 6 7, posterize 6 6;    equalize 4 0, solarize 2 4;       equalize 4 0, rotate 8 8
        solarize 6 3, equalize 6 0;      posterize 8 5, equalize 10 0;     rotate 2 3, solarize 6 8
        equalize 6 0, posterize 4 6;     rotate 8 8, color 4 0;            rotate 4 9, equalize 6 0
        equalize 0 0, equalize 8 0;      invert 6 0, equalize 10 0;        color 6 4, contrast 10 8
        rotate 8 8, color 10 2;          color 8 8, solarize 8 7;          sharpness 4 7, invert 6 0
        shear-x 6 5, equalize 10 0;      color 4 0, equalize 6 0;          equalize 4 0, solarize 2 4
        solarize 6 5, autocontrast 6 0;  invert 6 0, equalize 10 0;        color 6 4, contrast 10 8
        equalize 8 0, equalize 6 0
    """,
}


@dataclass(frozen=True)
class AutoAugment:
    """Apply a learned policy of two operations per sub-policy.

    Args:
        policy: "cifar10" or "imagenet", the data that it was learned on.

    >>> AutoAugment()(torch.zeros(2, 3, 32, 32, dtype=torch.uint8), Keys(0, 0, torch.arange(2))).shape
    torch.Size([2, 3, 32, 32])
    """

    policy: str = "cifar10"

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise ValueError(f"policy must be {' or '.join(POLICIES)}, got {self.policy!r}.")

    def __call__(self, images_BCHW: Tensor, keys: Keys) -> Tensor:
        """Return the augmented images."""
        index_P2, probability_P2, magnitude_P2, signed_P2 = _make_tables(self.policy, *images_BCHW.shape[-2:])
        draw = keys.uniform(5, "auto-augment")
        policy_B = (draw[:, 0] * len(index_P2)).long()
        for i in range(2):
            used_B = draw[:, 1 + i] < probability_P2[policy_B, i]
            sign_B = torch.where(signed_P2[policy_B, i] & (draw[:, 3 + i] < 0.5), -1, 1)
            index_B = torch.where(used_B, index_P2[policy_B, i], OPERATION_INDEX["identity"])
            images_BCHW = apply_operations(images_BCHW, index_B, magnitude_P2[policy_B, i] * sign_B)
        return images_BCHW


def parse_policy(policy: str) -> list[list[tuple[str, float, int]]]:
    """Return the sub-policies: name, probability and level of both operations.

    >>> parse_policy("cifar10")[0]
    [('invert', 0.1, 0), ('contrast', 0.2, 6)]
    """
    found = []
    for text in POLICIES[policy].strip().replace("\n", ";").split(";"):
        words = [operation.split() for operation in text.split(",")]
        found.append([(name, int(tenths) / 10, int(level)) for name, tenths, level in words])
    return found


@lru_cache(maxsize=8)
def _make_tables(policy: str, height: int, width: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Index, probability, magnitude and whether the magnitude is signed, of both operations; (25, 2) each."""
    pairs = parse_policy(policy)
    index = torch.tensor([[OPERATION_INDEX[name] for name, _, _ in pair] for pair in pairs])
    probability = torch.tensor([[probability for _, probability, _ in pair] for pair in pairs])
    magnitude = [[float(magnitudes(name, LEVELS, height, width)[level]) for name, _, level in pair] for pair in pairs]
    signed = torch.tensor([[OPERATIONS[name].signed for name, _, _ in pair] for pair in pairs])
    return index, probability, torch.tensor(magnitude, dtype=torch.float64), signed
