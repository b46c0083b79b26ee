"""A dataset from two lists of image files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

import torch
from torch import Tensor

from classgap.data.dataset import Dataset, Inputs, Split, Subset
from classgap.data.sources.image_cache import DecodedImages, DecodeOptions, decode_images
from classgap.data.sources.images import ImageFiles
from classgap.data.sources.original_images import CROPS, OriginalImages
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


def unique_names(names: Sequence[str], keys: Sequence[str]) -> tuple[str, ...]:
    """Append its key to each name that occurs several times.

    >>> unique_names(["crane", "tench", "crane"], ["n02", "n01", "n03"])
    ('crane (n02)', 'tench', 'crane (n03)')
    """
    counts = Counter(names)
    return tuple(name if counts[name] == 1 else f"{name} ({key})" for name, key in zip(names, keys, strict=True))


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
    validation: ImageList | None = None,
    crops: str = "stored",
) -> Dataset:
    """Load the images of two or three lists.

    Pixels are normalized with ImageNet's statistics. Images in memory with a short side of at most 64 pixels are
    normalized with the statistics of the training images instead.

    Args:
        name: Name of the dataset.
        train: Training images.
        test: Test images.
        class_names: One name per class.
        size: Side of the square images; ``None`` keeps a size that all images share.
        on_error: How to handle unreadable images: "raise" an error, or "skip" them.
        cache_gb: Limit of the decoded images in gigabytes; above it they are decoded on every use.
        notes: Notes to keep.
        validation: Images to select an epoch on, if the source has some.
        crops: Take random resized crops for training from the "stored" squares, or from the "original" files.

    Raises:
        ValueError: If files are missing or unreadable and ``on_error`` is "raise".
    """
    if on_error not in ("raise", "skip"):
        raise ValueError(f"on_error must be 'raise' or 'skip', got {on_error!r}.")
    if crops not in CROPS:
        raise ValueError(f"crops must be {' or '.join(CROPS)}, got {crops!r}.")
    lists = [train, test] if validation is None else [train, test, validation]
    paths = tuple(path for each in lists for path in each.paths)
    decoded = decode_images(paths, DecodeOptions(size, cache_gb, check=on_error == "skip"))
    num_train, num_fitted = (
        int((decoded.kept < end).sum()) for end in (len(train.paths), len(train.paths + test.paths))
    )
    if decoded.errors:
        notes += (_handle_errors(name, decoded, paths, num_train, num_fitted - num_train, on_error),)
    if decoded.cache_error:
        notes += (decoded.cache_error,)
    images = _make_inputs(decoded, paths)
    targets = torch.tensor([target for each in lists for target in each.targets])
    firsts = [0, *accumulate(len(each.paths) for each in lists)]
    splits = []
    for start, end in pairwise(firsts):
        rows = slice(*(int((decoded.kept < row).sum()) for row in (start, end)))
        splits.append(Split(_slice(images, rows), targets[decoded.kept[rows]], decoded.kept[rows] - start))
    stats = choose_stats(splits[0].inputs)
    if crops == "original":
        kept = tuple(paths[row] for row in decoded.kept[:num_train].tolist())
        stored = splits[0].inputs if isinstance(splits[0].inputs, Tensor) else None
        splits[0] = replace(splits[0], inputs=OriginalImages(kept, decoded.height, decoded.width, stored))
    shape = (3, decoded.height, decoded.width)
    return Dataset(
        name,
        splits[0],
        splits[1],
        class_names,
        "image",
        shape,
        *stats,
        notes,
        validation=splits[2] if len(splits) > 2 and len(splits[2]) else None,
    )


def _handle_errors(
    name: str, decoded: DecodedImages, paths: tuple[str, ...], num_train: int, num_test: int, on_error: str
) -> str:
    """Return a note about skipped files, or raise."""
    summary = _summarize_errors(name, decoded, paths)
    if on_error == "raise":
        raise ValueError(f"{summary}. Repair or remove them, or skip them with :on_error=skip.")
    if not num_train or not num_test:
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


def choose_stats(train: Inputs) -> ChannelStats:
    """Return ImageNet's statistics, or those of the training images if these are small and in memory."""
    images, rows = (train.inputs, train.rows) if isinstance(train, Subset) else (train, slice(None))
    if isinstance(images, Tensor) and min(images.shape[2:]) <= _SMALL:
        return channel_stats(images[rows])
    return IMAGENET


def _slice(images: Tensor | ImageFiles, rows: slice) -> Inputs:
    if isinstance(images, Tensor):
        return images[rows]
    return ImageFiles(images.paths[rows], images.height, images.width)
