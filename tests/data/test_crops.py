import math

import pytest
import torch
import torch.nn.functional as F
from scipy import stats
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as tv

from classgap.data.sampling.keyed_random import Keys
from classgap.data.transforms.crops import (
    CropFlip,
    RandomResizedCrop,
    center_crop,
    crop_windows,
    flip_where,
    random_boxes,
    reflect_pad,
)


def images(size: int = 20, channels: int = 3, height: int = 32, width: int = 32) -> torch.Tensor:
    return torch.randint(0, 256, (size, channels, height, width), dtype=torch.uint8)


@pytest.mark.parametrize(("channels", "height", "width"), [(3, 32, 32), (1, 28, 28), (3, 20, 31)])
@pytest.mark.parametrize("mode", ["constant", "reflect"])
def test_crop_flip_matches_a_loop(channels: int, height: int, width: int, mode: str) -> None:
    batch, keys = images(20, channels, height, width), Keys(3, 1, torch.arange(20))
    ours = CropFlip(padding=3, padding_mode=mode)(batch, keys)
    for image, result, (top, left, flip) in zip(batch, ours, keys.uniform(3, "crop-flip").tolist(), strict=True):
        padded = tv.pad(image, [3], padding_mode=mode)
        wanted = tv.crop(padded, int(top * 7), int(left * 7), height, width)
        assert result.equal(wanted.flip(-1) if flip < 0.5 else wanted)


def test_crop_positions_and_flips_are_uniform() -> None:
    mark = torch.zeros(8100, 1, 17, 17, dtype=torch.uint8)
    mark[:, :, 8, 8], mark[:, :, 8, 9] = 1, 2  # the position and the side of its neighbor identify crop and flip
    results = CropFlip(padding=2)(mark, Keys(0, 0, torch.arange(8100))).view(8100, 17, 17)
    place = (results == 1).flatten(1).byte().argmax(dim=1)
    after = results.flatten(1).gather(1, place[:, None] + 1)[:, 0] == 2
    cells = torch.stack([place // 17, place % 17, after.long()], dim=1)
    counts = torch.unique(cells, dim=0, return_counts=True)[1]
    assert len(counts) == 50
    assert stats.chisquare(counts.numpy()).pvalue > 1e-3


def test_padding_and_flips_can_be_disabled() -> None:
    batch, keys = images(), Keys(0, 0, torch.arange(20))
    assert CropFlip(padding=0, flip=False)(batch, keys).equal(batch)
    only = CropFlip(padding=0)(batch, keys)
    flip = keys.uniform(3, "crop-flip")[:, 2] < 0.5
    assert only.equal(torch.where(flip[:, None, None, None], batch.flip(-1), batch))


def test_windows_of_channels_last_images() -> None:
    batch = images(4).to(memory_format=torch.channels_last)
    top, left = torch.tensor([0, 1, 5, 22]), torch.tensor([22, 0, 3, 22])
    wanted = torch.stack([image[:, t : t + 10, x : x + 10] for image, t, x in zip(batch, top, left, strict=True)])
    assert crop_windows(batch, top, left, 10, 10).equal(wanted)


def test_flip_and_reflect_pad_do_not_modify_their_input() -> None:
    batch = images(3)
    before = batch.clone()
    assert flip_where(batch, torch.tensor([True, False, True]))[1].equal(batch[1])
    assert reflect_pad(batch, 5).equal(F.pad(batch.float(), (5,) * 4, mode="reflect").byte())
    assert batch.equal(before)
    with pytest.raises(ValueError, match="padding must be less than"):
        reflect_pad(batch, 32)


@pytest.mark.parametrize(("height", "width", "size"), [(40, 60, 40), (33, 48, 20), (224, 100, 10)])
def test_center_crop_matches_torchvision(height: int, width: int, size: int) -> None:
    batch = images(2, 3, height, width)
    assert center_crop(batch, size).equal(tv.center_crop(batch, [size, size]))
    with pytest.raises(ValueError, match="size must be at most"):
        center_crop(batch, 300)


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [None, 24, 64])
def test_resized_crops_match_torchvision_on_the_same_boxes(size: int | None, interpolation: str) -> None:
    batch, keys = images(12, 3, 48, 64), Keys(3, 1, torch.arange(12))
    ours = RandomResizedCrop(size, interpolation=interpolation)(batch, keys)
    draw = keys.uniform(23, "resized crop")
    boxes = random_boxes(draw[:, :-1], 48, 64, 0.08).tolist()
    out = [48, 64] if size is None else [size, size]
    for image, result, box, flip in zip(batch, ours, boxes, draw[:, -1], strict=True):
        wanted = tv.resized_crop(image, *box, out, v2.InterpolationMode(interpolation), antialias=True)
        assert result.equal(wanted.flip(-1) if flip < 0.5 else wanted)


@pytest.mark.parametrize(("height", "width"), [(64, 64), (48, 90)])
def test_boxes_are_distributed_as_in_torchvision(height: int, width: int) -> None:
    draw = Keys(0, 0, torch.arange(3000)).uniform(22, "boxes")
    ours = random_boxes(draw, height, width, 0.08).double()
    image = torch.zeros(3, height, width, dtype=torch.uint8)
    theirs_of = v2.RandomResizedCrop(10)
    found = [theirs_of.make_params([image]) for _ in range(3000)]
    theirs = torch.tensor([[p["top"], p["left"], p["height"], p["width"]] for p in found]).double()
    for mine, yours in zip(ours.T, theirs.T, strict=True):
        assert stats.ks_2samp(mine.numpy(), yours.numpy()).pvalue > 1e-3
    assert bool((ours[:, 0] + ours[:, 2] <= height).all())
    assert bool((ours[:, 1] + ours[:, 3] <= width).all())


def test_the_fallback_is_a_center_crop() -> None:
    draw = torch.full((1, 22), 0.999)  # nearly all the area, much wider than high: never in so high an image
    top, left, tall, wide = random_boxes(draw, 300, 30, 0.99)[0].tolist()
    assert (left, wide, tall) == (0, 30, 40)
    assert abs(top + tall / 2 - 150) <= 1
    assert math.isclose(wide / tall, 3 / 4)
