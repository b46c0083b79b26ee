"""The operations of AutoAugment and RandAugment: what their levels mean, and one of them on each image of a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from classgap.data.transforms import color as colour
from classgap.data.transforms import geometry


@dataclass(frozen=True)
class Operation:
    """One of them.

    Attributes:
        levels: the amounts of so many levels, for images of (height, width).
        signed: whether an amount is negated at random.
        matrices: where pixels come from, if it moves them.
        colours: the changed images, if it changes colours.
    """

    levels: Callable[[int, int, int], Tensor]
    signed: bool = False
    matrices: Callable[[Tensor, int, int], Tensor] | None = None
    colours: Callable[[Tensor, Tensor], Tensor] | None = None


def _up_to(largest: float) -> Callable[[int, int, int], Tensor]:
    return lambda levels, height, width: torch.linspace(0, largest, levels)


def _no_amount(levels: int, height: int, width: int) -> Tensor:
    return torch.zeros(levels)


def _moves(matrices: Callable[[Tensor, int, int], Tensor], largest: float) -> Operation:
    return Operation(_up_to(largest), signed=True, matrices=matrices)


def _factor(colours: Callable[[Tensor, Tensor], Tensor]) -> Operation:
    return Operation(_up_to(0.9), signed=True, colours=lambda images, amount: colours(images, 1 + amount))


def _plain(colours: Callable[[Tensor], Tensor]) -> Operation:
    return Operation(_no_amount, colours=lambda images, amount: colours(images))


# Ranges of AutoAugment's Table 6; shifts there are 150 pixels of 331.
OPERATIONS: dict[str, Operation] = {
    "identity": Operation(_no_amount),
    "shear-x": _moves(geometry.shear_x, 0.3),
    "shear-y": _moves(geometry.shear_y, 0.3),
    "translate-x": Operation(
        lambda levels, height, width: torch.linspace(0, 150 / 331 * width, levels), True, geometry.translate_x
    ),
    "translate-y": Operation(
        lambda levels, height, width: torch.linspace(0, 150 / 331 * height, levels), True, geometry.translate_y
    ),
    "rotate": _moves(geometry.rotate, 30.0),
    "brightness": _factor(colour.brightness),
    "color": _factor(colour.saturation),
    "contrast": _factor(colour.contrast),
    "sharpness": _factor(colour.sharpness),
    "posterize": Operation(
        lambda levels, height, width: (8 - torch.arange(levels) / ((levels - 1) / 4)).round(), colours=colour.posterize
    ),
    "solarize": Operation(lambda levels, height, width: torch.linspace(255, 0, levels), colours=colour.solarize),
    "autocontrast": _plain(colour.autocontrast),
    "equalize": _plain(colour.equalize),
    "invert": _plain(colour.invert),
}
NUMBERS = {name: number for number, name in enumerate(OPERATIONS)}
_KINDS = list(OPERATIONS.values())


def amounts(name: str, levels: int, height: int, width: int) -> Tensor:
    """What each level of an operation means, float64.

    >>> amounts("rotate", 4, 32, 32)
    tensor([ 0., 10., 20., 30.], dtype=torch.float64)
    """
    return OPERATIONS[name].levels(levels, height, width).double()


def apply_operations(images_BCHW: Tensor, number_B: Tensor, amount_B: Tensor) -> Tensor:
    """One operation on each image.

    Args:
        images_BCHW: uint8, one or three channels.
        number_B: which operation, by its number in ``NUMBERS``.
        amount_B: how much of it, with its sign.

    >>> image = torch.tensor([[[[1, 2]]], [[[1, 2]]]], dtype=torch.uint8)
    >>> apply_operations(image, torch.tensor([NUMBERS["invert"], 0]), torch.zeros(2)).flatten()
    tensor([254, 253,   1,   2], dtype=torch.uint8)
    """
    if not len(images_BCHW):
        return images_BCHW
    # Sorted by operation, each one's images are a slice; moves share one matrix product and one gather.
    order = number_B.argsort(stable=True)
    images, sorted_amount = images_BCHW.index_select(0, order), amount_B[order]
    size = images.shape[-2:]
    counts = torch.bincount(number_B, minlength=len(_KINDS)).tolist()
    done, moved, matrices, start = [], [], [], 0
    for kind, count in zip(_KINDS, counts, strict=True):
        part, amount = images[start : start + count], sorted_amount[start : start + count]
        start += count
        if count and kind.matrices is not None:
            moved.append(part)
            matrices.append(kind.matrices(amount, *size))
            continue
        if moved:
            done.append(geometry.transformed(torch.cat(moved), torch.cat(matrices)))
            moved, matrices = [], []
        if count:
            done.append(part if kind.colours is None else kind.colours(part, amount))
    return torch.cat(done).index_select(0, order.argsort())
