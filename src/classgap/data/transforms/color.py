"""Color operations on a batch of uint8 images, with a magnitude per image.

They equal ``torchvision.transforms.v2.functional`` on single images. Images have one or three channels.
"""

from __future__ import annotations

import torch
from torch import Tensor

_GRAY = (0.2989, 0.587, 0.114)


def brightness(images_BCHW: Tensor, factor_B: Tensor) -> Tensor:
    """Adjust brightness: 0 is black, 1 the original.

    >>> brightness(torch.tensor([[[[10, 200]]]], dtype=torch.uint8), torch.tensor([1.5])).flatten()
    tensor([ 15, 255], dtype=torch.uint8)
    """
    return _bytes(images_BCHW.float().mul_(_each(factor_B)))


def saturation(images_BCHW: Tensor, factor_B: Tensor) -> Tensor:
    """Adjust saturation: 0 is gray, 1 the original."""
    if images_BCHW.shape[1] == 1:
        return images_BCHW
    return _blend(images_BCHW, _gray(images_BCHW), factor_B)


def contrast(images_BCHW: Tensor, factor_B: Tensor) -> Tensor:
    """Adjust contrast: 0 is the mean gray of the image, 1 the original."""
    return _blend(images_BCHW, _gray(images_BCHW).mean(dim=(1, 2, 3), keepdim=True), factor_B)


def sharpness(images_BCHW: Tensor, factor_B: Tensor) -> Tensor:
    """Adjust sharpness: 0 is blurred, 1 the original, 2 sharpened. The border does not change."""
    if min(images_BCHW.shape[-2:]) <= 2:
        return images_BCHW
    images = images_BCHW.float()
    middle = images[:, :, 1:-1, 1:-1]
    # The 3×3 kernel is 1 everywhere and 5 in the center, over 13. Two sums of three lines are much faster than a
    # depthwise convolution. No multiple of 1/13 lies halfway between two bytes, so rounding is safe.
    lines = images[:, :, :-2] + images[:, :, 1:-1] + images[:, :, 2:]
    box = lines[..., :-2] + lines[..., 1:-1] + lines[..., 2:]
    blurred = box.add_(middle, alpha=4).div_(13).round_()
    middle.addcmul_(blurred.sub_(middle), _each(1 - factor_B))
    return _bytes(images)


def posterize(images_BCHW: Tensor, bits_B: Tensor) -> Tensor:
    """Keep the most significant bits.

    >>> posterize(torch.tensor([[[[255, 7]]]], dtype=torch.uint8), torch.tensor([3.0])).flatten()
    tensor([224,   0], dtype=torch.uint8)
    """
    mask_B = 256 - 2 ** (8 - bits_B.long())
    return images_BCHW & mask_B.byte().view(-1, 1, 1, 1)


def solarize(images_BCHW: Tensor, threshold_B: Tensor) -> Tensor:
    """Invert pixels at or above the threshold, in [0, 255].

    >>> solarize(torch.tensor([[[[250, 7]]]], dtype=torch.uint8), torch.tensor([100.0])).flatten()
    tensor([5, 7], dtype=torch.uint8)
    """
    # For bytes, x ≥ t equals x ≥ ⌈t⌉, which allows a comparison of bytes.
    least_B = _each(threshold_B.ceil()).byte()
    return images_BCHW ^ (images_BCHW >= least_B).byte().mul_(255)


def autocontrast(images_BCHW: Tensor) -> Tensor:
    """Stretch each channel to the range 0 to 255."""
    images = images_BCHW.float()
    low = images.amin(dim=(2, 3), keepdim=True)
    high = images.amax(dim=(2, 3), keepdim=True)
    flat = high == low
    scale = ((high - low) * (1 / 255)).masked_fill_(flat, 1)
    return _bytes(images.sub_(low.masked_fill_(flat, 0)).div_(scale))


def equalize(images_BCHW: Tensor) -> Tensor:
    """Equalize the histogram of each channel with Pillow's rule."""
    planes = images_BCHW.flatten(0, 1).flatten(1)
    count, pixels = planes.shape
    # One histogram for all planes, with bins 256 p, … for plane p. 32-bit indices halve the time.
    first = torch.arange(0, count * 256, 256, dtype=torch.int32, device=planes.device)
    bins = (planes + first[:, None]).view(-1)
    histogram = torch.bincount(bins, minlength=count * 256).view(count, 256)
    upto = histogram.cumsum(1)
    brightest = histogram.gather(1, upto.argmax(1, keepdim=True))
    step = (pixels - brightest).div(255, rounding_mode="floor")
    table = (upto - histogram + step // 2).div(step.clamp(min=1), rounding_mode="floor").clamp_(0, 255)
    table = torch.where(step == 0, torch.arange(256, device=planes.device), table)
    return table.byte().view(-1).index_select(0, bins).view_as(images_BCHW)


def invert(images_BCHW: Tensor) -> Tensor:
    """Invert all pixels."""
    return ~images_BCHW


def _each(amount_B: Tensor) -> Tensor:
    return amount_B.float().view(-1, 1, 1, 1)


def _bytes(images: Tensor) -> Tensor:
    return images.clamp_(0, 255).byte()


def _gray(images_BCHW: Tensor) -> Tensor:
    if images_BCHW.shape[1] == 1:
        return images_BCHW.float()
    red, green, blue = images_BCHW.float().unbind(1)
    return red.mul(_GRAY[0]).add_(green, alpha=_GRAY[1]).add_(blue, alpha=_GRAY[2]).floor_()[:, None]


def _blend(images_BCHW: Tensor, other: Tensor, factor_B: Tensor) -> Tensor:
    # addcmul rounds once, so a pixel equal to its blend does not drop to the next lower byte.
    return _bytes(images_BCHW.float().mul_(_each(factor_B)).addcmul_(other, _each(1 - factor_B)))
