"""Augmentations by name: ``crop-flip``, ``rrc:size=224``, ``auto-augment``, ``rand-augment:n=2:m=9``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from torch import Tensor

from classgap.data.sampling.keyed_random import Keys
from classgap.data.transforms.auto_augment import AutoAugment
from classgap.data.transforms.crops import CropFlip, RandomResizedCrop
from classgap.data.transforms.perspective import RandomPerspective
from classgap.data.transforms.rand_augment import RandAugment
from classgap.registry import Entry, Registry

if TYPE_CHECKING:
    from classgap.data.sources.original_images import OriginalImages


class Augment(Protocol):
    """A random transform of a batch of uint8 images that depends only on the images and their keys."""

    def __call__(self, images_BCHW: Tensor, keys: Keys, /) -> Tensor:
        """Return the augmented images, uint8."""
        ...


class _Compose:
    """Apply two augmentations in sequence."""

    def __init__(self, first: Augment, second: Augment) -> None:
        self.first, self.second = first, second

    def __call__(self, images_BCHW: Tensor, keys: Keys, /) -> Tensor:
        return self.second(self.first(images_BCHW, keys), keys)


def _none() -> None:
    return None


def _crop_flip(*, padding: int = 4, padding_mode: str = "constant", flip: bool = True) -> Augment:
    return CropFlip(padding, padding_mode, flip)


def _rrc(
    *, size: int | None = None, scale: float = 0.08, flip: bool = True, interpolation: str = "bilinear"
) -> Augment:
    return RandomResizedCrop(size, scale, flip, interpolation)


def _perspective(*, distortion_scale: float = 0.5, p: float = 0.5, flip: bool = True) -> Augment:
    return RandomPerspective(distortion_scale, p, flip)


def _auto_augment(
    *,
    policy: str = "cifar10",
    crop: str = "crop-flip",
    size: int | None = None,
    interpolation: str | None = None,
) -> Augment:
    return _Compose(_crop(crop, size, interpolation), AutoAugment(policy))


def _rand_augment(
    *, n: int = 2, m: int = 9, crop: str = "crop-flip", size: int | None = None, interpolation: str | None = None
) -> Augment:
    return _Compose(_crop(crop, size, interpolation), RandAugment(n, m))


def _crop(name: str, size: int | None, interpolation: str | None) -> Augment:
    if name == "rrc":
        return RandomResizedCrop(size, interpolation=interpolation or "bilinear")
    if name != "crop-flip" or size is not None or interpolation is not None:
        raise ValueError(
            f"crop must be crop-flip (without size and interpolation) or rrc, got {name!r} with size {size} and "
            f"interpolation {interpolation}."
        )
    return CropFlip()


def augment_originals(augment: Augment | None, images: OriginalImages, rows: Tensor, keys: Keys) -> Tensor:
    """Augment image files, with a random resized crop of each as the first transform.

    Args:
        augment: An augmentation; see :func:`crops_originals`.
        images: The files.
        rows: Rows of the files, (B,).
        keys: Keys of the samples.
    """
    if isinstance(augment, _Compose):
        return augment.second(augment_originals(augment.first, images, rows, keys), keys)
    assert isinstance(augment, RandomResizedCrop)
    return augment.crop_originals(images, rows, keys)


def crops_originals(augment: Augment | None) -> bool:
    """Whether an augmentation starts with a random resized crop.

    >>> crops_originals(build_augment("rrc")), crops_originals(build_augment("crop-flip"))
    (True, False)
    """
    return isinstance(augment.first if isinstance(augment, _Compose) else augment, RandomResizedCrop)


AUGMENTS: Registry[Augment | None] = Registry(
    "augmentation",
    [
        Entry("none", "No augmentation.", _none),
        Entry("crop-flip", "Random crop with padding, and flip; for small images.", _crop_flip),
        Entry("rrc", "Random resized crop, and flip; for photographs.", _rrc),
        Entry("perspective", "Random perspective, and flip; the recipe of LMDL for RSCD.", _perspective),
        Entry("auto-augment", "Crop, then AutoAugment (Cubuk et al., 2019).", _auto_augment),
        Entry("rand-augment", "Crop, then RandAugment (Cubuk et al., 2020).", _rand_augment),
    ],
)


def build_augment(text: str) -> Augment | None:
    """Build an augmentation by name; ``None`` for "none".

    >>> build_augment("crop-flip:padding=2")
    CropFlip(padding=2, padding_mode='constant', flip=True)
    >>> build_augment("rand-augment:n=3") is None
    False
    """
    return AUGMENTS.build(text)
