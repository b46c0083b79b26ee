"""Images that a Hugging Face dataset stores as encoded bytes or file names."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import IO, Any

import torch
from torch import Tensor

from classgap.data.sources.image_cache import common_size
from classgap.data.sources.images import read_image, read_image_size, try_read
from classgap.data.sources.parallel import map_in_threads, progress_bar

_BLOCK = 256  # rows read at a time


@dataclass(frozen=True)
class EncodedImages:
    """Inputs that are decoded on demand.

    Attributes:
        rows: A ``datasets.Dataset`` with the column, whose images are not decoded.
        column: Name of the column.
        height: Height of the decoded images.
        width: Width of the decoded images.
    """

    rows: Any
    column: str
    height: int
    width: int

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: Tensor, /) -> Tensor:
        """Decode the images of some rows, uint8, (B, 3, height, width).

        Raises:
            ValueError: If an image cannot be read.
        """
        wanted = rows.tolist()
        images = torch.empty(len(wanted), 3, self.height, self.width, dtype=torch.uint8)
        cells, pixels = self.rows[wanted][self.column], images.numpy()

        def read(position: int) -> None:
            image, reason = try_read(lambda: read_image(_source(cells[position]), self.height, self.width))
            if image is None:
                raise ValueError(f"the image in row {wanted[position]}, column {self.column!r} is invalid ({reason}).")
            pixels[position] = image

        map_in_threads(read, range(len(wanted)))
        return images


def load_encoded_images(
    parts: Sequence[Any], column: str, *, size: int | None, cache_gb: float
) -> list[Tensor | EncodedImages]:
    """Decode the images of each split to one size, in memory if all of them take at most ``cache_gb`` gigabytes.

    Args:
        parts: Splits, as ``datasets.Dataset`` whose images are not decoded.
        column: Column of images.
        size: Side of the squares; ``None`` keeps a size that all images share, as in ``folder``.
        cache_gb: Limit of the decoded images; above it they are decoded on every use.

    Raises:
        ValueError: If an option is invalid or an image cannot be read.
    """
    if size is not None and size < 1:
        raise ValueError(f"size must be at least 1 pixel, got {size}.")
    if not cache_gb >= 0:
        raise ValueError(f"cache_gb must be at least 0, got {cache_gb}.")
    height, width = (size, size) if size is not None else common_size(_read_sizes(parts, column))
    images = [EncodedImages(rows, column, height, width) for rows in parts]
    total = sum(map(len, images))
    if total * 3 * height * width > cache_gb * 1e9:
        return list(images)
    decoded: list[Tensor | EncodedImages] = []
    with progress_bar("decoding images", total) as advance:
        for each in images:
            pixels = torch.empty(len(each), 3, height, width, dtype=torch.uint8)
            for rows in torch.arange(len(each)).split(_BLOCK):
                pixels[rows] = each[rows]
                advance(len(rows))
            decoded.append(pixels)
    return decoded


def _read_sizes(parts: Sequence[Any], column: str) -> set[tuple[int, int]]:
    """Read the height and width of all readable images; decoding reports the others."""
    sizes: set[tuple[int, int]] = set()
    for rows in parts:
        for start in range(0, len(rows), _BLOCK):
            for cell in rows[start : start + _BLOCK][column]:
                found, _ = try_read(partial(_read_size, cell))
                sizes |= set() if found is None else {found}
    return sizes


def _read_size(cell: dict[str, Any] | None) -> tuple[int, int]:
    return read_image_size(_source(cell))


def _source(cell: dict[str, Any] | None) -> str | IO[bytes]:
    if cell is None:
        raise ValueError("it is missing")
    return cell["path"] if cell["bytes"] is None else io.BytesIO(cell["bytes"])
