"""Random resized crops of the image files themselves, against Pillow and torchvision."""

from pathlib import Path

import numpy as np
import pytest
import torch
from image_files import pixels
from PIL import Image
from torch import Tensor
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as tv

from classgap.data import BatchLoader, RandomOrder, load
from classgap.data.sampling.keyed_random import Keys
from classgap.data.transforms.crops import random_boxes

SIZES = ((40, 28), (21, 33), (30, 30))


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Smooth images of several sizes, larger than the stored squares."""
    for split, count in (("train", 6), ("test", 2)):
        for k, name in enumerate("ab"):
            (tmp_path / split / name).mkdir(parents=True)
            for i in range(count):
                height, width = SIZES[i % 3]
                small = Image.fromarray(pixels(100 * k + i, 7, 6))
                small.resize((width, height), Image.Resampling.BICUBIC).save(tmp_path / split / name / f"{i}.png")
    return tmp_path


def loader(data: object, augment: str = "rrc:size=12:interpolation=bicubic", **options: object) -> BatchLoader:
    train = data.train  # type: ignore[attr-defined]
    return BatchLoader(train, RandomOrder(len(train)), batch_size=4, num_classes=2, augment=augment, **options)


def inputs_by_row(batches: BatchLoader, epoch: int = 1) -> dict[int, Tensor]:
    return {
        int(row): image for batch in batches.epoch(epoch) for row, image in zip(batch.rows, batch.inputs, strict=True)
    }


def files(photos: Path) -> list[Path]:
    return sorted((photos / "train").rglob("*.png"))


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
def test_crops_are_cut_out_of_the_files(photos: Path, interpolation: str) -> None:
    data = load(f"folder:{photos}:size=16:crops=original")
    found = inputs_by_row(loader(data, f"rrc:size=12:interpolation={interpolation}"))
    assert len(found) == 12
    draw = Keys(0, 1, torch.arange(12)).uniform(23, "resized crop")
    for row, path in enumerate(files(photos)):
        picture = Image.open(path)
        box = random_boxes(draw[row : row + 1, :-1], picture.height, picture.width, 0.08)[0].tolist()
        mode = v2.InterpolationMode(interpolation)
        by_tensor = tv.resized_crop(tv.pil_to_tensor(picture), *box, [12, 12], mode, antialias=True)
        by_pillow = tv.pil_to_tensor(tv.resized_crop(picture, *box, [12, 12], mode))
        if draw[row, -1] < 0.5:
            by_tensor, by_pillow = by_tensor.flip(-1), by_pillow.flip(-1)
        ours = (found[row] * 255).round().byte()
        assert ours.equal(by_tensor)
        assert int((ours.int() - by_pillow.int()).abs().max()) <= 1  # Pillow rounds between its two passes


def test_other_passes_see_the_stored_squares(photos: Path) -> None:
    text = f"folder:{photos}:size=16"
    stored, original, uncached = (load(f"{text}{end}") for end in ("", ":crops=original", ":crops=original:cache_gb=0"))
    rows = torch.tensor([3, 0, 11])
    for data in (original, uncached):
        assert data.train.inputs[rows].equal(stored.train.inputs[rows])
        assert data.test.inputs[rows[:1]].equal(stored.test.inputs[rows[:1]])
        assert data.train.index.equal(stored.train.index)
    assert not np.allclose(inputs_by_row(loader(original))[0], inputs_by_row(loader(stored))[0])


def test_batches_do_not_depend_on_cache_processes_subsets_and_interruptions(photos: Path) -> None:
    text = f"folder:{photos}:size=16:crops=original"
    data = load(text)
    whole = inputs_by_row(loader(data))
    uncached = inputs_by_row(loader(load(f"{text}:cache_gb=0")))
    parts = [inputs_by_row(loader(data, rank=rank, world_size=2)) for rank in (0, 1)]
    for other in (uncached, parts[0] | parts[1]):
        assert all(image.equal(other[row]) for row, image in whole.items())
    resumed = [batch.inputs for batch in loader(data).epoch(1, start=1)]
    assert torch.cat(resumed).equal(torch.cat([batch.inputs for batch in loader(data).epoch(1)])[4:])
    half = load(f"{text}:fraction=0.5")
    rows = {int(half.train.index[row]): image for row, image in inputs_by_row(loader(half)).items()}
    assert len(rows) == 6
    assert all(whole[row].equal(image) for row, image in rows.items())


@pytest.mark.parametrize("augment", ["auto-augment:crop=rrc:size=12", "rand-augment:crop=rrc:interpolation=bicubic"])
def test_other_augmentations_may_start_with_such_a_crop(photos: Path, augment: str) -> None:
    found = inputs_by_row(loader(load(f"folder:{photos}:size=16:crops=original"), augment, views=2))
    assert {tuple(image.shape) for image in found.values()} == {(3, 12, 12) if "size" in augment else (3, 16, 16)}


def test_it_needs_resized_crops_and_readable_files(photos: Path) -> None:
    data = load(f"folder:{photos}:size=16:crops=original")
    for augment in ("crop-flip", "none", "auto-augment"):
        with pytest.raises(ValueError, match=f"crops=original .*augment is {augment}"):
            loader(data, augment)
    with pytest.raises(ValueError, match="crops must be stored or original, got 'files'"):
        load(f"folder:{photos}:crops=files")
    files(photos)[4].write_bytes(b"no image")
    with pytest.raises(ValueError, match=rf"cannot read the image .*{files(photos)[4].name}"):
        list(loader(data).epoch(0))
