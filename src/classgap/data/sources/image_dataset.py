"""A dataset from two lists of image files."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from classgap.data.dataset import Dataset, Inputs, Split
from classgap.data.sources.image_cache import DecodedImages, DecodeOptions, decode_images
from classgap.data.sources.images import ImageFiles
from classgap.data.transforms.normalize import IMAGENET, ChannelStats, channel_stats

_SMALL = 64  # images up to this size are rarely photographs, so their own statistics fit better than ImageNet's
_MAX_LISTED = 5  # unreadable files that a message lists


@dataclass(frozen=True)
class ImageList:
    """Image files with their classes.

    Attributes:
        paths: Image files.
        targets: Class of each file.
    """

    paths: tuple[str, ...]
    targets: tuple[int, ...]

    def subset(self, rows: Tensor) -> ImageList:
        """Return the list of some rows."""
        return ImageList(*(tuple(column[row] for row in rows.tolist()) for column in (self.paths, self.targets)))


def load_image_dataset(
    name: str,
    train: ImageList,
    test: ImageList,
    class_names: tuple[str, ...],
    *,
    size: int | None,
    on_error: str,
    cache_gb: float,
    notes: tuple[str, ...] = (),
) -> Dataset:
    """Load the images of two lists.

    Pixels are normalized with ImageNet's statistics. Images in memory with a short side of at most 64 pixels are
    normalized with the statistics of the training images instead.

    Args:
        name: Name of the dataset.
        train: Training images.
        test: Test images.
        class_names: One name per class.
        size: Side of the square images; ``None`` keeps a size that all images share.
        on_error: "raise" or "skip" if an image cannot be read.
        cache_gb: Limit of the decoded images in gigabytes; above it they are decoded on every use.
        notes: Notes to keep.

    Raises:
        ValueError: If files are missing or unreadable and ``on_error`` is "raise".
    """
    if on_error not in ("raise", "skip"):
        raise ValueError(f"on_error must be 'raise' or 'skip', got {on_error!r}.")
    paths = train.paths + test.paths
    decoded = decode_images(paths, DecodeOptions(size, cache_gb, check=on_error == "skip"))
    num_train = int((decoded.kept < len(train.paths)).sum())
    if decoded.errors:
        notes += (_handle_errors(name, decoded, paths, num_train, on_error),)
    if decoded.cache_error:
        notes += (decoded.cache_error,)
    images = _make_inputs(decoded, paths)
    targets = torch.tensor(train.targets + test.targets)
    parts = ((slice(0, num_train), 0), (slice(num_train, len(decoded.kept)), len(train.paths)))
    splits = [
        Split(_slice(images, rows), targets[decoded.kept[rows]], decoded.kept[rows] - first) for rows, first in parts
    ]
    shape = (3, decoded.height, decoded.width)
    return Dataset(name, splits[0], splits[1], class_names, "image", shape, *_choose_stats(images, num_train), notes)


def _handle_errors(name: str, decoded: DecodedImages, paths: tuple[str, ...], num_train: int, on_error: str) -> str:
    """Return a note about skipped files, or raise."""
    summary = _summarize_errors(name, decoded, paths)
    if on_error == "raise":
        raise ValueError(f"{summary}. Repair or remove them, or skip them with :on_error=skip.")
    if not 0 < num_train < len(decoded.kept):
        raise ValueError(f"{summary}. No {'test' if num_train else 'training'} images are left.")
    return f"{summary}; skipped."


def _summarize_errors(name: str, decoded: DecodedImages, paths: tuple[str, ...]) -> str:
    listed = [f"{paths[row]} ({reason})" for row, reason in sorted(decoded.errors.items())[:_MAX_LISTED]]
    more = len(decoded.errors) - len(listed)
    ending = f" and {more} more" if more else ""
    return f"{name}: cannot read {len(decoded.errors)} of {len(paths)} images: {', '.join(listed)}{ending}"


def _make_inputs(decoded: DecodedImages, paths: tuple[str, ...]) -> Tensor | ImageFiles:
    if decoded.images is not None:
        return decoded.images
    return ImageFiles(tuple(paths[row] for row in decoded.kept.tolist()), decoded.height, decoded.width)


def _choose_stats(images: Tensor | ImageFiles, num_train: int) -> ChannelStats:
    if isinstance(images, Tensor) and min(images.shape[2:]) <= _SMALL:
        return channel_stats(images[:num_train])
    return IMAGENET


def _slice(images: Tensor | ImageFiles, rows: slice) -> Inputs:
    if isinstance(images, Tensor):
        return images[rows]
    return ImageFiles(images.paths[rows], images.height, images.width)
