"""Changes of colour of a whole batch of uint8 images, with an amount for each image.

They compute what ``torchvision.transforms.v2.functional`` computes for one image with one amount. Images have one or
three channels.
"""

from __future__ import annotations

import torch
from torch import Tensor

_GREY = (0.2989, 0.587, 0.114)


def brightness(images_BCHW: Tensor, factor_B: Tensor) -> Tensor:
    """0 is black, 1 changes nothing.

    >>> brightness(torch.tensor([[[[10, 200]]]], dtype=torch.uint8), torch.tensor([1.5])).flatten()
    tensor([ 15, 255], dtype=torch.uint8)
    """
    return _bytes(images_BCHW.float().mul_(_each(factor_B)))


def saturation(images_BCHW: Tensor, factor_B: Tensor) -> Tensor:
    """0 is grey, 1 changes nothing."""
    if images_BCHW.shape[1] == 1:
        return images_BCHW
    return _blend(images_BCHW, _grey(images_BCHW), factor_B)


def contrast(images_BCHW: Tensor, factor_B: Tensor) -> Tensor:
    """0 is the image's mean grey everywhere, 1 changes nothing."""
    return _blend(images_BCHW, _grey(images_BCHW).mean(dim=(1, 2, 3), keepdim=True), factor_B)


def sharpness(images_BCHW: Tensor, factor_B: Tensor) -> Tensor:
    """0 is blurred, 1 changes nothing, 2 is sharpened; the border stays."""
    if min(images_BCHW.shape[-2:]) <= 2:
        return images_BCHW
    images = images_BCHW.float()
    middle = images[:, :, 1:-1, 1:-1]
    # The kernel is 1 everywhere and 5 in the middle, over 13: a box of 3 by 3 is two sums of three lines each, which is
    # many times as fast as a convolution a channel. No thirteenth lies halfway between bytes, so rounding is safe.
    lines = images[:, :, :-2] + images[:, :, 1:-1] + images[:, :, 2:]
    box = lines[..., :-2] + lines[..., 1:-1] + lines[..., 2:]
    blurred = box.add_(middle, alpha=4).div_(13).round_()
    middle.addcmul_(blurred.sub_(middle), _each(1 - factor_B))
    return _bytes(images)


def posterize(images_BCHW: Tensor, bits_B: Tensor) -> Tensor:
    """Keep the leading bits.

    >>> posterize(torch.tensor([[[[255, 7]]]], dtype=torch.uint8), torch.tensor([3.0])).flatten()
    tensor([224,   0], dtype=torch.uint8)
    """
    mask_B = 256 - 2 ** (8 - bits_B.long())
    return images_BCHW & mask_B.byte().view(-1, 1, 1, 1)


def solarize(images_BCHW: Tensor, threshold_B: Tensor) -> Tensor:
    """Invert what is at least the threshold, a number from 0 to 255.

    >>> solarize(torch.tensor([[[[250, 7]]]], dtype=torch.uint8), torch.tensor([100.0])).flatten()
    tensor([5, 7], dtype=torch.uint8)
    """
    # On bytes, x ≥ t is x ≥ ⌈t⌉, which keeps the comparison in bytes.
    least_B = _each(threshold_B.ceil()).byte()
    return images_BCHW ^ (images_BCHW >= least_B).byte().mul_(255)


def autocontrast(images_BCHW: Tensor) -> Tensor:
    """Stretch each channel from its smallest and largest value to 0 and 255."""
    images = images_BCHW.float()
    low = images.amin(dim=(2, 3), keepdim=True)
    high = images.amax(dim=(2, 3), keepdim=True)
    flat = high == low
    scale = ((high - low) * (1 / 255)).masked_fill_(flat, 1)
    return _bytes(images.sub_(low.masked_fill_(flat, 0)).div_(scale))


def equalize(images_BCHW: Tensor) -> Tensor:
    """Flatten each channel's histogram, by Pillow's rule."""
    planes = images_BCHW.flatten(0, 1).flatten(1)
    count, pixels = planes.shape
    # One histogram for all planes: plane p owns the bins from 256 p. Indices of 32 bits halve the time.
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
    """Black for white."""
    return ~images_BCHW


def _each(amount_B: Tensor) -> Tensor:
    return amount_B.float().view(-1, 1, 1, 1)


def _bytes(images: Tensor) -> Tensor:
    return images.clamp_(0, 255).byte()


def _grey(images_BCHW: Tensor) -> Tensor:
    if images_BCHW.shape[1] == 1:
        return images_BCHW.float()
    red, green, blue = images_BCHW.float().unbind(1)
    return red.mul(_GREY[0]).add_(green, alpha=_GREY[1]).add_(blue, alpha=_GREY[2]).floor_()[:, None]


def _blend(images_BCHW: Tensor, other: Tensor, factor_B: Tensor) -> Tensor:
    # addcmul rounds once: a pixel that is its own blend stays what it is, instead of falling to the byte below.
    return _bytes(images_BCHW.float().mul_(_each(factor_B)).addcmul_(other, _each(1 - factor_B)))
