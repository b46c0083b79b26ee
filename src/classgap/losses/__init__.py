"""One loss a file: hyper-parameters, state, a call into ``functional``, one reduction."""

from classgap.losses.base import ClassLoss, Part
from classgap.losses.cross_entropy import CrossEntropyLoss
from classgap.losses.elm import ELMLoss
from classgap.losses.large_margin_discriminative import LargeMarginDiscriminativeLoss
from classgap.losses.mr2 import MR2Loss
from classgap.losses.mr2_release import MR2ReleaseLoss
from classgap.losses.weighted import ClassWeightedLoss

__all__ = [
    "ClassLoss",
    "ClassWeightedLoss",
    "CrossEntropyLoss",
    "ELMLoss",
    "LargeMarginDiscriminativeLoss",
    "MR2Loss",
    "MR2ReleaseLoss",
    "Part",
]
