"""Augmentations by name: ``crop-flip``, ``rrc:size=224``, ``auto-augment``, ``rand-augment:n=2:m=9``."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from classgap.data.sampling.keyed_random import Keys
from classgap.data.transforms.auto_augment import AutoAugment
from classgap.data.transforms.crops import CropFlip, RandomResizedCrop
from classgap.data.transforms.rand_augment import RandAugment
from classgap.registry import Entry, Registry


class Augment(Protocol):
    """A random change of a batch of uint8 images; what is random comes from ``keys`` alone."""

    def __call__(self, images_BCHW: Tensor, keys: Keys, /) -> Tensor:
        """The changed images, uint8."""
        ...


class _Both:
    """One augmentation after the other."""

    def __init__(self, first: Augment, second: Augment) -> None:
        self.first, self.second = first, second

    def __call__(self, images_BCHW: Tensor, keys: Keys, /) -> Tensor:
        return self.second(self.first(images_BCHW, keys), keys)


def _none() -> None:
    return None


def _crop_flip(*, pad: int = 4, mode: str = "zero", flip: bool = True) -> Augment:
    return CropFlip(pad, mode, flip)


def _rrc(*, size: int | None = None, scale: float = 0.08, flip: bool = True) -> Augment:
    return RandomResizedCrop(size, scale, flip)


def _auto_augment(*, policy: str = "cifar10", crop: str = "crop-flip", size: int | None = None) -> Augment:
    return _Both(_crop(crop, size), AutoAugment(policy))


def _rand_augment(*, n: int = 2, m: int = 9, crop: str = "crop-flip", size: int | None = None) -> Augment:
    return _Both(_crop(crop, size), RandAugment(n, m))


def _crop(name: str, size: int | None) -> Augment:
    if name == "rrc":
        return RandomResizedCrop(size)
    if name != "crop-flip" or size is not None:
        raise ValueError(f"crop must be crop-flip, or rrc with or without a size; got {name!r} with size {size}.")
    return CropFlip()


AUGMENTS: Registry[Augment | None] = Registry(
    "augmentation",
    [
        Entry("none", "The images as they are.", _none),
        Entry("crop-flip", "Pad by 4, crop at random, flip: the usual one for small images.", _crop_flip),
        Entry("rrc", "A random part, resized, and flip: the usual one for photographs.", _rrc),
        Entry("auto-augment", "A crop, then AutoAugment (Cubuk et al., 2019).", _auto_augment),
        Entry("rand-augment", "A crop, then RandAugment (Cubuk et al., 2020).", _rand_augment),
    ],
)


def build_augment(text: str) -> Augment | None:
    """The augmentation that ``text`` names, ``None`` for "none".

    >>> build_augment("crop-flip:pad=2")
    CropFlip(pad=2, mode='zero', flip=True)
    >>> build_augment("rand-augment:n=3") is None
    False
    """
    return AUGMENTS.build(text)
