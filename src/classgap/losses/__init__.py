"""One loss a file: hyper-parameters, state, a call into ``functional``, one reduction."""

from classgap.losses.base import ClassLoss, Part
from classgap.losses.elm import ELMLoss
from classgap.losses.large_margin_discriminative import LargeMarginDiscriminativeLoss
from classgap.losses.mr2 import MR2Loss
from classgap.losses.mr2_release import MR2ReleaseLoss

__all__ = ["ClassLoss", "ELMLoss", "LargeMarginDiscriminativeLoss", "MR2Loss", "MR2ReleaseLoss", "Part"]
