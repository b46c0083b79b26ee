"""Read image files as uint8 arrays of a given size."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from classgap._regular_files import check_regular_file
from classgap.data.sources.parallel import map_in_threads

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

EXTENSIONS = frozenset(
    (
        ".avif",
        ".bmp",
        ".gif",
        ".jfif",
        ".jp2",
        ".jpe",
        ".jpeg",
        ".jpg",
        ".pbm",
        ".pgm",
        ".png",
        ".ppm",
        ".tga",
        ".tif",
        ".tiff",
        ".webp",
    )
)
_ORIENTATION, _TURNED = 0x0112, (5, 6, 7, 8)  # EXIF: these orientations swap width and height

Pixels = NDArray[np.uint8]


def is_image_name(name: str) -> bool:
    """Whether a file name has an image extension and is not hidden.

    >>> is_image_name("cat.JPG"), is_image_name("._cat.jpg"), is_image_name("notes.txt")
    (True, False, False)
    """
    return not name.startswith(".") and os.path.splitext(name)[1].lower() in EXTENSIONS


def read_image_size(path: str | IO[bytes]) -> tuple[int, int]:
    """Read the height and width from the header, after applying the EXIF orientation."""
    from PIL import Image

    _check_file(path)
    with Image.open(path) as image:
        width, height = image.size
        # Looking for EXIF data in a PNG would decode its pixels, and PNGs rarely have any.
        turned = image.format != "PNG" and image.getexif().get(_ORIENTATION) in _TURNED
    return (width, height) if turned else (height, width)


def read_image(path: str | IO[bytes], height: int, width: int) -> Pixels:
    """Decode to RGB, (3, height, width): apply the EXIF orientation, resize to cover the size, center-crop."""
    with open_picture(path) as picture:
        return fit_picture(picture, height, width)


def read_original(path: str) -> Pixels:
    """Decode to RGB at full size, (3, H, W), and apply the EXIF orientation."""
    with open_picture(path) as picture:
        return np.asarray(_as_rgb(picture)).transpose(2, 0, 1)


def _check_file(path: str | IO[bytes]) -> None:
    if isinstance(path, str):
        check_regular_file(path)


@contextmanager
def open_picture(path: str | IO[bytes]) -> Iterator[Picture]:
    """Open an image file and apply its EXIF orientation."""
    from PIL import Image, ImageOps

    _check_file(path)
    with Image.open(path) as picture:
        try:
            ImageOps.exif_transpose(picture, in_place=True)
        except MemoryError:  # a damaged header states any size
            raise ValueError("decoding it takes more memory than is available") from None
        yield picture


def fit_picture(picture: Picture, height: int, width: int, *, channels: int = 3) -> Pixels:
    """Convert to bytes, (channels, height, width): resize to cover the size and center-crop.

    Args:
        picture: The image; it does not change.
        height: Height of the result.
        width: Width of the result.
        channels: 3 for RGB, 1 for gray.

    Raises:
        ValueError: If ``channels`` is neither 1 nor 3.
    """
    from PIL import Image, ImageOps

    if channels not in (1, 3):
        raise ValueError(f"image files have 1 or 3 channels, but the network takes {channels}; pass arrays.")
    image = _as_rgb(picture)
    if channels == 1:
        image = image.convert("L")
    if image.size != (width, height):
        # fit() scales by the larger of the two ratios and center-crops.
        image = ImageOps.fit(image, (width, height), method=Image.Resampling.BICUBIC)
    pixels = np.asarray(image)
    return pixels[None] if channels == 1 else pixels.transpose(2, 0, 1)


def _as_rgb(image: Picture) -> Picture:
    from PIL import Image

    if image.mode.startswith("I;16"):  # convert() would clip 16 bits at 255 instead of scaling
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if image.mode == "P" and "transparency" in image.info:
        image = image.convert("RGBA")
    return image.convert("RGB")


def try_read(work: Callable[[], Any]) -> tuple[Any, str]:
    """Return the result of ``work`` and "", or ``None`` and the reason if the file cannot be read."""
    try:
        return work(), ""
    except MemoryError:
        raise
    except Exception as error:  # Pillow's decoders raise OSError, SyntaxError, ValueError, struct.error and more
        return None, str(error) or type(error).__name__


@dataclass(frozen=True)
class ImageFiles:
    """Inputs that are decoded on demand, for datasets that do not fit into memory.

    Attributes:
        paths: One file per sample.
        height: Height of the decoded images.
        width: Width of the decoded images.
    """

    paths: tuple[str, ...]
    height: int
    width: int

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, rows: Tensor, /) -> Tensor:
        """Decode the images of some rows, uint8, (B, 3, height, width).

        Raises:
            ValueError: If a file cannot be read.
        """
        images = torch.empty(len(rows), 3, self.height, self.width, dtype=torch.uint8)
        wanted, pixels = rows.tolist(), images.numpy()

        def read(position: int) -> None:
            path = self.paths[wanted[position]]
            image, reason = try_read(lambda: read_image(path, self.height, self.width))
            if image is None:
                raise ValueError(f"cannot read the image {path} ({reason}); repair it, or skip it with :on_error=skip.")
            pixels[position] = image

        map_in_threads(read, range(len(wanted)))
        return images
