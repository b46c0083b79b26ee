"""Operations of AutoAugment and RandAugment: their magnitudes, and applying one to each image of a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from classgap.data.transforms import color, geometry


@dataclass(frozen=True)
class Operation:
    """One operation, geometric or on colors.

    Attributes:
        levels: Returns the magnitudes of a number of levels, for images of a height and width.
        signed: Whether the magnitude is negated at random.
        make_matrices: Returns the affine matrices of a geometric operation.
        change_colors: Returns the images after a color operation.
    """

    levels: Callable[[int, int, int], Tensor]
    signed: bool = False
    make_matrices: Callable[[Tensor, int, int], Tensor] | None = None
    change_colors: Callable[[Tensor, Tensor], Tensor] | None = None


def _up_to(largest: float) -> Callable[[int, int, int], Tensor]:
    return lambda levels, height, width: torch.linspace(0, largest, levels)


def _no_magnitude(levels: int, height: int, width: int) -> Tensor:
    return torch.zeros(levels)


def _geometric(make_matrices: Callable[[Tensor, int, int], Tensor], largest: float) -> Operation:
    return Operation(_up_to(largest), signed=True, make_matrices=make_matrices)


def _factor(change: Callable[[Tensor, Tensor], Tensor]) -> Operation:
    return Operation(_up_to(0.9), signed=True, change_colors=lambda images, amount: change(images, 1 + amount))


def _plain(change: Callable[[Tensor], Tensor]) -> Operation:
    return Operation(_no_magnitude, change_colors=lambda images, amount: change(images))


# Ranges of AutoAugment's Table 6, where translations are up to 150 of 331 pixels.
OPERATIONS: dict[str, Operation] = {
    "identity": Operation(_no_magnitude),
    "shear-x": _geometric(geometry.shear_x, 0.3),
    "shear-y": _geometric(geometry.shear_y, 0.3),
    "translate-x": Operation(
        lambda levels, height, width: torch.linspace(0, 150 / 331 * width, levels), True, geometry.translate_x
    ),
    "translate-y": Operation(
        lambda levels, height, width: torch.linspace(0, 150 / 331 * height, levels), True, geometry.translate_y
    ),
    "rotate": _geometric(geometry.rotate, 30.0),
    "brightness": _factor(color.brightness),
    "color": _factor(color.saturation),
    "contrast": _factor(color.contrast),
    "sharpness": _factor(color.sharpness),
    "posterize": Operation(
        lambda levels, height, width: (8 - torch.arange(levels) / ((levels - 1) / 4)).round(),
        change_colors=color.posterize,
    ),
    "solarize": Operation(lambda levels, height, width: torch.linspace(255, 0, levels), change_colors=color.solarize),
    "autocontrast": _plain(color.autocontrast),
    "equalize": _plain(color.equalize),
    "invert": _plain(color.invert),
}
OPERATION_INDEX = {name: index for index, name in enumerate(OPERATIONS)}


def magnitudes(name: str, levels: int, height: int, width: int) -> Tensor:
    """Return the magnitude of each level of an operation, float64.

    >>> magnitudes("rotate", 4, 32, 32)
    tensor([ 0., 10., 20., 30.], dtype=torch.float64)
    """
    return OPERATIONS[name].levels(levels, height, width).double()


def apply_operations(images_BCHW: Tensor, index_B: Tensor, magnitude_B: Tensor) -> Tensor:
    """Apply one operation to each image.

    Args:
        images_BCHW: Images, uint8, with one or three channels.
        index_B: Operation of each image, by its index in ``OPERATION_INDEX``.
        magnitude_B: Signed magnitude of each operation.

    >>> image = torch.tensor([[[[1, 2]]], [[[1, 2]]]], dtype=torch.uint8)
    >>> apply_operations(image, torch.tensor([OPERATION_INDEX["invert"], 0]), torch.zeros(2)).flatten()
    tensor([254, 253,   1,   2], dtype=torch.uint8)
    """
    if not len(images_BCHW):
        return images_BCHW
    # Sort by operation, so that the images of each are a slice. Geometric operations share one resampling.
    order = index_B.argsort(stable=True)
    images, sorted_magnitude = images_BCHW.index_select(0, order), magnitude_B[order]
    size = images.shape[-2:]
    counts = torch.bincount(index_B, minlength=len(OPERATIONS)).tolist()
    done, pending, matrices, start = [], [], [], 0
    for operation, count in zip(OPERATIONS.values(), counts, strict=True):
        part, magnitude = images[start : start + count], sorted_magnitude[start : start + count]
        start += count
        if count and operation.make_matrices is not None:
            pending.append(part)
            matrices.append(operation.make_matrices(magnitude, *size))
            continue
        if pending:
            done.append(geometry.warp_affine(torch.cat(pending), torch.cat(matrices)))
            pending, matrices = [], []
        if count:
            done.append(part if operation.change_colors is None else operation.change_colors(part, magnitude))
    return torch.cat(done).index_select(0, order.argsort())
