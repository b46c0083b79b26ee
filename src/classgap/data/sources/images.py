"""Images from files, as uint8 tensors of one size."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

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
    """Whether a file of that name is taken for an image: a known extension, and not hidden.

    >>> is_image_name("cat.JPG"), is_image_name("._cat.jpg"), is_image_name("notes.txt")
    (True, False, False)
    """
    return not name.startswith(".") and os.path.splitext(name)[1].lower() in EXTENSIONS


def image_size(path: str) -> tuple[int, int]:
    """Height and width as they are seen, from the header alone."""
    from PIL import Image

    with Image.open(path) as image:
        width, height = image.size
        # A PNG would be decoded to look for EXIF data behind its pixels, where they hardly ever are.
        turned = image.format != "PNG" and image.getexif().get(_ORIENTATION) in _TURNED
    return (width, height) if turned else (height, width)


def read_image(path: str, height: int, width: int) -> Pixels:
    """Decode to RGB, (3, height, width): turned as EXIF says, scaled to cover the size, cropped at the centre."""
    from PIL import Image, ImageOps

    with Image.open(path) as file:
        ImageOps.exif_transpose(file, in_place=True)
        image = _as_rgb(file)
    if image.size != (width, height):
        # fit() scales by the larger of the two ratios and cuts equally from both ends.
        image = ImageOps.fit(image, (width, height), method=Image.Resampling.BICUBIC)
    return np.asarray(image).transpose(2, 0, 1)


def _as_rgb(image: Picture) -> Picture:
    from PIL import Image

    if image.mode.startswith("I;16"):  # convert() would cut 16 bits off at 255 instead of scaling them
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if image.mode == "P" and "transparency" in image.info:
        image = image.convert("RGBA")
    return image.convert("RGB")


def threads() -> int:
    """How many threads decode: the processors that this process may use, at most 16."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, 16)


def in_threads(
    work: Callable[[int], Any],
    rows: Sequence[int],
    *,
    workers: int | None = None,
    done: Callable[[int], None] = lambda more: None,
) -> list[Any]:
    """``work`` for each row, results in order.

    Args:
        work: what is done.
        rows: its arguments.
        workers: threads; one for each processor unless given.
        done: hears how many more are finished.
    """
    workers = threads() if workers is None else workers
    step = min(64, max(1, len(rows) // (4 * workers)))  # small enough that no thread waits long for the last
    chunks = [rows[start : start + step] for start in range(0, len(rows), step)]

    def run(chunk: Sequence[int]) -> list[Any]:
        results = [work(row) for row in chunk]
        done(len(chunk))
        return results

    with ThreadPoolExecutor(workers) as pool:  # a pool a call: nothing to lose when a process forks or pickles
        return [result for results in pool.map(run, chunks) for result in results]


def try_image(work: Callable[[], Any]) -> tuple[Any, str]:
    """What ``work`` gives for an image and "", or ``None`` and the reason why the file cannot be read."""
    try:
        return work(), ""
    except MemoryError:
        raise
    except Exception as error:  # Pillow's decoders raise OSError, SyntaxError, ValueError, struct.error and more
        return None, str(error) or type(error).__name__


@dataclass(frozen=True)
class ImageFiles:
    """Inputs that are decoded when asked for: data sets that do not fit in memory.

    Attributes:
        paths: one file a sample.
        height: of what is given.
        width: of what is given.
    """

    paths: tuple[str, ...]
    height: int
    width: int

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, rows: Tensor, /) -> Tensor:
        """The images of these rows, uint8, (B, 3, height, width).

        Raises:
            ValueError: if a file cannot be read; it is named.
        """
        images = torch.empty(len(rows), 3, self.height, self.width, dtype=torch.uint8)
        asked, pixels = rows.tolist(), images.numpy()

        def read(place: int) -> None:
            path = self.paths[asked[place]]
            image, reason = try_image(lambda: read_image(path, self.height, self.width))
            if image is None:
                raise ValueError(f"the image {path} cannot be read ({reason}); repair it, or add :broken=skip.")
            pixels[place] = image

        in_threads(read, range(len(asked)))
        return images
