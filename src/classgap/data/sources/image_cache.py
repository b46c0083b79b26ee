"""Decode image files once and keep them in a cache shared by all processes.

The key of a cache file covers the names, sizes and times of the image files and how they are decoded, so changed files
are decoded again. Cache files are written atomically, memory-mapped, and rebuilt if their length is wrong. One process
decodes while the others wait. If the cache cannot be written, decoding still works but is repeated.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from classgap._atomic_write import atomic_write, remove_leftovers
from classgap.data.sources.cache_dirs import cache_dir, file_lock
from classgap.data.sources.images import read_image, read_image_size, try_read
from classgap.data.sources.parallel import map_in_threads, progress_bar

_FORMAT = "1"  # increase when decoding changes
_TINY = 8192  # bytes
_STORED = 256  # side of stored photographs, enough for crops of 224


@dataclass(frozen=True)
class DecodeOptions:
    """Options for decoding image files.

    Attributes:
        size: Side of the decoded squares. ``None`` keeps a size that all images share if its short side is at most
            256, and otherwise decodes to squares of 256.
        cache_gb: Limit of the decoded images in gigabytes; above it they are decoded on every use.
        check: Decode every file once even above the limit, to find unreadable ones.
    """

    size: int | None = None
    cache_gb: float = 4.0
    check: bool = False

    def __post_init__(self) -> None:
        if self.size is not None and self.size < 1:
            raise ValueError(f"size must be at least 1 pixel, got {self.size}.")
        if not self.cache_gb >= 0:
            raise ValueError(f"cache_gb must be at least 0, got {self.cache_gb}.")


@dataclass(frozen=True)
class DecodedImages:
    """Result of decoding a list of files.

    Attributes:
        height: Height of all images.
        width: Width of all images.
        kept: Rows of the readable files, (M,).
        errors: Reasons why the other files cannot be read, by row.
        images: Readable images, uint8, (M, 3, height, width); ``None`` above the size limit.
        checked: Whether every file was decoded.
        cache_error: Why the images could not be cached; empty if they were.
    """

    height: int
    width: int
    kept: Tensor
    errors: dict[int, str]
    images: Tensor | None
    checked: bool
    cache_error: str = ""


def decode_images(paths: Sequence[str], options: DecodeOptions) -> DecodedImages:
    """Decode files, or memory-map the result of an earlier call.

    Args:
        paths: Image files.
        options: Size and limits.
    """
    stats = [_stat(path) for path in paths]
    cache_file = cache_dir() / "decoded" / f"{_key(paths, stats, options)}.safetensors"
    cached = _load(cache_file, options)
    if cached is not None:
        return cached
    with file_lock(cache_file.with_suffix(".lock")):
        cached = _load(cache_file, options)  # another process may just have written it
        if cached is not None:
            return cached
        remove_leftovers(cache_file)
        decoded = _decode(paths, stats, options)
        cache_error = _save(cache_file, decoded)
        return replace(decoded, cache_error=cache_error) if cache_error else _load(cache_file, options) or decoded


def _stat(path: str) -> tuple[int, int] | None:
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_size, stat.st_mtime_ns


def _key(paths: Sequence[str], stats: list[tuple[int, int] | None], options: DecodeOptions) -> str:
    text = json.dumps([_FORMAT, options.size, options.cache_gb, [os.path.abspath(path) for path in paths], stats])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _decode(paths: Sequence[str], stats: list[tuple[int, int] | None], options: DecodeOptions) -> DecodedImages:
    errors = {row: "file not found" for row, stat in enumerate(stats) if stat is None}
    rows = [row for row in range(len(paths)) if row not in errors]
    # Tiny files spend their time in Python, not in the decoder, so threads would only contend for the interpreter.
    tiny = sum(stat[0] for stat in stats if stat is not None) < _TINY * len(rows)
    workers = 1 if tiny else None
    height, width, size_errors = _choose_size(paths, rows, options.size, workers)
    errors |= size_errors
    rows = [row for row in rows if row not in errors]
    fits = len(rows) * 3 * height * width <= options.cache_gb * 1e9
    images = torch.empty(len(rows), 3, height, width, dtype=torch.uint8) if fits else None
    if fits or options.check:
        reasons = _read_all([paths[row] for row in rows], images, height, width, workers)
        errors |= {row: reason for row, reason in zip(rows, reasons, strict=True) if reason}
        good = torch.tensor([not reason for reason in reasons], dtype=torch.bool)
        images = images[good] if images is not None and not good.all() else images
    kept = torch.tensor([row for row in rows if row not in errors], dtype=torch.int64)
    return DecodedImages(height, width, kept, errors, images, checked=fits or options.check)


def _read_all(paths: Sequence[str], images: Tensor | None, height: int, width: int, workers: int | None) -> list[str]:
    """Decode files, into ``images`` if given. Return the error of each file, or ""."""
    pixels = None if images is None else images.numpy()

    def read(row: int) -> str:
        image, reason = try_read(lambda: read_image(paths[row], height, width))
        if pixels is not None and image is not None:
            pixels[row] = image
        return reason

    with progress_bar("decoding images", len(paths)) as advance:
        return map_in_threads(read, range(len(paths)), workers=workers, advance=advance)


def _choose_size(
    paths: Sequence[str], rows: list[int], size: int | None, workers: int | None
) -> tuple[int, int, dict[int, str]]:
    """Return the height and width to decode to, and the errors of files without a readable header."""
    if size is not None:
        return size, size, {}

    def read(row: int) -> tuple[tuple[int, int], str]:
        return try_read(lambda: read_image_size(paths[row]))

    with progress_bar("reading image sizes", len(rows)) as advance:
        results = map_in_threads(read, rows, workers=workers, advance=advance)
    sizes = {found for found, reason in results if not reason}
    errors = {row: reason for row, (_, reason) in zip(rows, results, strict=True) if reason}
    return *common_size(sizes), errors


def common_size(sizes: set[tuple[int, int]]) -> tuple[int, int]:
    """Return the only height and width if the short side has at most 256 pixels, and otherwise 256 × 256.

    >>> common_size({(32, 48)}), common_size({(32, 32), (48, 48)}), common_size({(1000, 800)})
    ((32, 48), (256, 256), (256, 256))
    """
    height, width = next(iter(sizes)) if len(sizes) == 1 else (_STORED, _STORED)
    return (height, width) if min(height, width) <= _STORED else (_STORED, _STORED)


def _save(cache_file: Path, decoded: DecodedImages) -> str:
    """Write the cache file. Return the reason if that fails, or ""."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    tensors = {"kept": decoded.kept} | ({} if decoded.images is None else {"images": decoded.images})
    facts = {"height": decoded.height, "width": decoded.width, "checked": decoded.checked, "broken": decoded.errors}
    try:
        cache_file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(cache_file) as file:  # by name, to avoid a second copy of the images in memory
            save_file(tensors, file.name, metadata={"format": _FORMAT, "facts": json.dumps(facts)})
    except (OSError, SafetensorError) as error:
        room = sum(tensor.nbytes for tensor in tensors.values()) / 1e9
        return (
            f"Decoded images could not be cached ({error}). Set CLASSGAP_CACHE to a directory with {room:.2f} GB of "
            "free space."
        )
    return ""


def _load(cache_file: Path, options: DecodeOptions) -> DecodedImages | None:
    """Memory-map a cache file; return ``None`` if it is missing or invalid."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(cache_file, "pt") as file:  # raises if the length does not match the header
            facts = json.loads(file.metadata()["facts"])
            tensors = {name: file.get_tensor(name) for name in list(file.keys())}
        kept, images = tensors["kept"], tensors.get("images")
        found = DecodedImages(
            facts["height"],
            facts["width"],
            kept,
            {int(row): reason for row, reason in facts["broken"].items()},
            images,
            facts["checked"],
        )
    except (OSError, SafetensorError, KeyError, TypeError, ValueError):
        return None
    fits = images is None or images.shape == (len(kept), 3, found.height, found.width)
    return found if fits and (found.checked or not options.check) else None
