import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from image_files import as_tensor_layout, pixels, write
from PIL import Image

from classgap.data.sources.images import ImageFiles, read_image, read_image_size


def test_pixels_match_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "a.png", seed=1)
    assert np.array_equal(read_image(str(path), 6, 6), as_tensor_layout(pixels(1)))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_applied(tmp_path: Path, orientation: int) -> None:
    image = pixels(1, 4, 6)
    turn = {
        1: lambda a: a,
        2: lambda a: a[:, ::-1],
        3: lambda a: a[::-1, ::-1],
        4: lambda a: a[::-1],
        5: lambda a: a.transpose(1, 0, 2),
        6: lambda a: np.rot90(a, -1),
        7: lambda a: a[::-1, ::-1].transpose(1, 0, 2),
        8: lambda a: np.rot90(a, 1),
    }[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(image).save(tmp_path / "a.webp", lossless=True, exif=exif)
    seen = turn(image)
    assert read_image_size(str(tmp_path / "a.webp")) == seen.shape[:2]
    assert np.array_equal(read_image(str(tmp_path / "a.webp"), *seen.shape[:2]), as_tensor_layout(seen))


@pytest.mark.parametrize(("height", "width"), [(12, 40), (40, 12)])
def test_resizing_keeps_the_center(tmp_path: Path, height: int, width: int) -> None:
    image = np.zeros((height, width, 3), np.uint8)
    middle = slice(14, 26)
    if width > height:
        image[:, middle] = 200
    else:
        image[middle] = 200
    Image.fromarray(image).save(tmp_path / "a.png")
    assert (read_image(str(tmp_path / "a.png"), 12, 12) == 200).all()
    smaller = read_image(str(tmp_path / "a.png"), 6, 6)
    assert smaller.shape == (3, 6, 6)
    assert (smaller[:, 2:4, 2:4] == 200).all()


def test_modes_become_rgb(tmp_path: Path) -> None:
    gray = np.arange(36, dtype=np.uint8).reshape(6, 6) * 7
    Image.fromarray(gray).save(tmp_path / "gray.png")
    Image.fromarray(gray.astype(np.uint16) * 256 + 9).save(tmp_path / "deep.png")
    Image.fromarray(gray).convert("P").save(tmp_path / "palette.png", transparency=bytes(range(256)))
    Image.fromarray(np.dstack([pixels(3), gray])).save(tmp_path / "alpha.png")
    for name in ("gray", "deep", "palette"):
        assert np.array_equal(read_image(str(tmp_path / f"{name}.png"), 6, 6), np.stack([gray] * 3)), name
    assert np.array_equal(read_image(str(tmp_path / "alpha.png"), 6, 6), as_tensor_layout(pixels(3)))


def test_rows_are_read_on_demand(tmp_path: Path) -> None:
    paths = tuple(str(write(tmp_path / f"{seed}.png", seed)) for seed in range(5))
    files = ImageFiles(paths, 6, 6)
    Path(paths[3]).unlink()
    for each in (files, pickle.loads(pickle.dumps(files))):
        given = each[torch.tensor([4, 0, 4])]
        assert given.dtype == torch.uint8
        expected = np.stack([as_tensor_layout(pixels(seed)) for seed in (4, 0, 4)])
        assert np.array_equal(given.numpy(), expected)
    with pytest.raises(ValueError, match=r"cannot read the image .*3\.png"):
        files[torch.tensor([1, 3])]
    assert files[torch.tensor([], dtype=torch.int64)].shape == (0, 3, 6, 6)
