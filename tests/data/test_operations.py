import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as tv

from classgap.data.transforms import color
from classgap.data.transforms.operations import OPERATION_INDEX, OPERATIONS, apply_operations, magnitudes

LEVELS = 10


def photographs(channels: int = 3, height: int = 32, width: int = 32) -> Tensor:
    """Smooth images with noise, plus a flat, a black, a two-colored and a noisy one."""
    generator = torch.Generator().manual_seed(5)
    coarse = torch.rand(12, channels, 5, 5, generator=generator)
    smooth = torch.nn.functional.interpolate(coarse, (height, width), mode="bicubic", align_corners=False) * 200 + 20
    images = (smooth + torch.randn(smooth.shape, generator=generator) * 6).clamp(0, 255).byte()
    images[0], images[1], images[2, :, : height // 2] = 77, 0, 200
    images[2, :, height // 2 :] = 30
    images[3] = torch.randint(0, 256, images[3].shape, generator=generator, dtype=torch.uint8)
    return images


# The operation on one image, by torchvision; a factor is one plus the amount, as in its AutoAugment.
ORACLES: dict[str, Callable[[Tensor, float], Tensor]] = {
    "brightness": lambda image, amount: tv.adjust_brightness(image, 1.0 + amount),
    "color": lambda image, amount: tv.adjust_saturation(image, 1.0 + amount),
    "contrast": lambda image, amount: tv.adjust_contrast(image, 1.0 + amount),
    "sharpness": lambda image, amount: tv.adjust_sharpness(image, 1.0 + amount),
    "posterize": lambda image, amount: tv.posterize(image, int(amount)),
    "solarize": lambda image, amount: tv.solarize(image, amount),
    "autocontrast": lambda image, amount: tv.autocontrast(image),
    "equalize": lambda image, amount: tv.equalize(image),
    "invert": lambda image, amount: tv.invert(image),
    "identity": lambda image, amount: image,
    "shear-x": lambda image, amount: tv.affine(
        image, 0.0, [0, 0], 1.0, [math.degrees(math.atan(amount)), 0.0], center=[0, 0]
    ),
    "shear-y": lambda image, amount: tv.affine(
        image, 0.0, [0, 0], 1.0, [0.0, math.degrees(math.atan(amount))], center=[0, 0]
    ),
    "translate-x": lambda image, amount: tv.affine(image, 0.0, [int(amount), 0], 1.0, [0.0, 0.0]),
    "translate-y": lambda image, amount: tv.affine(image, 0.0, [0, int(amount)], 1.0, [0.0, 0.0]),
    "rotate": lambda image, amount: tv.rotate(image, amount),
}
# Some pixels come from the very middle between two (level 2 shears by 1/15 a row): rounding errors choose one.
INTERPOLATED = {"shear-x", "shear-y", "rotate"}
SIZES = pytest.mark.parametrize(("channels", "height", "width"), [(3, 32, 32), (1, 28, 28), (3, 40, 57)])


def signed_magnitudes(name: str, size: int, height: int, width: int) -> Tensor:
    """A different magnitude for each image, with both signs if the operation is signed."""
    steps = magnitudes(name, LEVELS, height, width)[torch.arange(size) % LEVELS]
    return torch.where(torch.arange(size) % 2 == 0, 1, -1) * steps if OPERATIONS[name].signed else steps


@SIZES
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_batch_matches_torchvision_on_each_image(name: str, channels: int, height: int, width: int) -> None:
    images = photographs(channels, height, width)
    amount_B = signed_magnitudes(name, len(images), height, width)
    ours = apply_operations(images, torch.full((len(images),), OPERATION_INDEX[name]), amount_B)
    theirs = torch.stack([ORACLES[name](image, float(a)) for image, a in zip(images, amount_B, strict=True)])
    wrong = (ours != theirs).float().mean()
    assert float(wrong) <= (0.005 if name in INTERPOLATED else 0), float(wrong)


def test_all_operations_in_one_batch_are_independent() -> None:
    images = photographs().repeat(5, 1, 1, 1)
    number_B = torch.randint(len(OPERATIONS), (60,))
    names = list(OPERATIONS)
    amount_B = torch.tensor([float(magnitudes(names[n], LEVELS, 32, 32)[6]) for n in number_B.tolist()]).double()
    together = apply_operations(images, number_B, amount_B)
    alone = [apply_operations(images[i : i + 1], number_B[i : i + 1], amount_B[i : i + 1]) for i in range(60)]
    assert together.equal(torch.cat(alone))


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("levels", [10, 31])
def test_magnitudes_match_torchvision(name: str, levels: int) -> None:
    title = "".join(word.title() for word in name.split("-")).replace("Autocontrast", "AutoContrast")
    space = v2.RandAugment._AUGMENTATION_SPACE | v2.AutoAugment._AUGMENTATION_SPACE
    their_levels, signed = space[title]
    theirs = their_levels(levels, 32, 48)
    if theirs is not None:
        scale = 255 if name == "solarize" else 1  # theirs is a fraction of the largest value
        torch.testing.assert_close(magnitudes(name, levels, 32, 48), theirs.double() * scale, rtol=1e-6, atol=1e-6)
    assert OPERATIONS[name].signed == signed


def test_images_too_small_to_blur_are_unchanged() -> None:
    tiny = torch.randint(0, 256, (2, 3, 2, 9), dtype=torch.uint8)
    assert color.sharpness(tiny, torch.tensor([0.1, 1.9])).equal(tiny)


def test_inputs_are_not_modified() -> None:
    images = photographs()
    before = images.clone()
    for name in OPERATIONS:
        apply_operations(images, torch.full((12,), OPERATION_INDEX[name]), signed_magnitudes(name, 12, 32, 32))
    assert images.equal(before)


def test_an_empty_batch_stays_empty() -> None:
    empty = torch.empty(0, 3, 8, 8, dtype=torch.uint8)
    assert apply_operations(empty, torch.empty(0, dtype=torch.long), torch.empty(0)).shape == (0, 3, 8, 8)
