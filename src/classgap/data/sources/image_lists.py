"""A data set from two lists of image files."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from classgap.data.dataset import Dataset, Inputs, Split
from classgap.data.sources.image_cache import Decoded, Reading, decode
from classgap.data.sources.images import ImageFiles
from classgap.data.sources.pixels import IMAGENET, Statistics, pixel_statistics

_SMALL = 64  # up to this size images are seldom photographs like ImageNet's: their own statistics are taken
_NAMED = 5  # broken files that a message names


@dataclass(frozen=True)
class ImageList:
    """Image files with their classes.

    Attributes:
        paths: the files.
        targets: their classes.
    """

    paths: tuple[str, ...]
    targets: tuple[int, ...]

    def part(self, rows: Tensor) -> ImageList:
        """Some of them."""
        return ImageList(*(tuple(column[row] for row in rows.tolist()) for column in (self.paths, self.targets)))


def image_dataset(
    name: str,
    train: ImageList,
    test: ImageList,
    class_names: tuple[str, ...],
    *,
    size: int | None,
    broken: str,
    memory: float,
    remarks: tuple[str, ...] = (),
) -> Dataset:
    """Read the images of both lists.

    Pixels are to be normalised by ImageNet's mean and deviation, or, where images are kept in memory and their short
    side is at most 64, by those of the training images.

    Args:
        name: of the data set.
        train: to learn from.
        test: to look at once.
        class_names: one name a class.
        size: side of the squares that images become; ``None`` keeps a size that all share.
        broken: "stop" if one file cannot be read, or "skip" such files.
        memory: gigabytes that decoded images may take; above it they are decoded when they are used.
        remarks: what there is to say already.

    Raises:
        ValueError: if files are missing or broken and are not to be skipped; they are counted and named.
    """
    if broken not in ("stop", "skip"):
        raise ValueError(f"broken must be stop or skip; got {broken!r}.")
    paths = train.paths + test.paths
    decoded = decode(paths, Reading(size, memory, check=broken == "skip"))
    cut = int((decoded.kept < len(train.paths)).sum())
    if decoded.broken:
        remarks += (_left_out(name, decoded, paths, cut, broken),)
    if decoded.remark:
        remarks += (decoded.remark,)
    images = _inputs(decoded, paths)
    targets = torch.tensor(train.targets + test.targets)
    parts = ((slice(0, cut), 0), (slice(cut, len(decoded.kept)), len(train.paths)))
    splits = [
        Split(_slice(images, rows), targets[decoded.kept[rows]], decoded.kept[rows] - first) for rows, first in parts
    ]
    shape = (3, decoded.height, decoded.width)
    return Dataset(name, splits[0], splits[1], class_names, "image", shape, *_statistics(images, cut), remarks)


def _left_out(name: str, decoded: Decoded, paths: tuple[str, ...], cut: int, broken: str) -> str:
    """What there is to say about files that cannot be read, if it is possible to go on without them."""
    report = _report(name, decoded, paths)
    if broken == "stop":
        raise ValueError(f"{report}. Repair or remove them, or add :broken=skip to go on without them.")
    if not 0 < cut < len(decoded.kept):
        raise ValueError(f"{report}. None is left to {'test on' if cut else 'learn from'}.")
    return f"{report}; they are left out."


def _report(name: str, decoded: Decoded, paths: tuple[str, ...]) -> str:
    named = [f"{paths[row]} ({reason})" for row, reason in sorted(decoded.broken.items())[:_NAMED]]
    more = len(decoded.broken) - len(named)
    ending = f" and {more} more" if more else ""
    return f"{name}: {len(decoded.broken)} of {len(paths)} images cannot be read: {', '.join(named)}{ending}"


def _inputs(decoded: Decoded, paths: tuple[str, ...]) -> Tensor | ImageFiles:
    if decoded.images is not None:
        return decoded.images
    return ImageFiles(tuple(paths[row] for row in decoded.kept.tolist()), decoded.height, decoded.width)


def _statistics(images: Tensor | ImageFiles, cut: int) -> Statistics:
    if isinstance(images, Tensor) and min(images.shape[2:]) <= _SMALL:
        return pixel_statistics(images[:cut])
    return IMAGENET


def _slice(images: Tensor | ImageFiles, rows: slice) -> Inputs:
    if isinstance(images, Tensor):
        return images[rows]
    return ImageFiles(images.paths[rows], images.height, images.width)
