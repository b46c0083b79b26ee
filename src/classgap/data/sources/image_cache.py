"""Image files, decoded once: what was read of them, kept in a cache that processes share.

A cache file belongs to the files' names, sizes and times and to how they are read, so a changed file is decoded anew.
It is written whole or not at all, mapped into memory instead of read, and made again if its length is wrong. One
process decodes while the others wait. A cache that cannot be written costs time only.
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
from classgap.data.sources.cache_dirs import cache_dir, one_process
from classgap.data.sources.images import image_size, in_threads, read_image, try_image
from classgap.data.sources.progress import progress

_FORMAT = "1"  # raise it when decoding changes
_TINY = 8192  # bytes
_STORED = 256  # side of what is kept of photographs: room for crops of 224


@dataclass(frozen=True)
class Reading:
    """How image files are read.

    Attributes:
        size: side of the square that is kept; ``None`` keeps images as they are if all have one size of at most 256 on
            the short side, and makes squares of 256 otherwise.
        memory: gigabytes that decoded images may take; above it they are decoded whenever they are used.
        check: whether every file is decoded once even then, to find the broken ones.
    """

    size: int | None = None
    memory: float = 4.0
    check: bool = False

    def __post_init__(self) -> None:
        if self.size is not None and self.size < 1:
            raise ValueError(f"size must be 1 or more pixels; got {self.size}.")
        if not self.memory >= 0:
            raise ValueError(f"memory must be 0 or more gigabytes; got {self.memory}.")


@dataclass(frozen=True)
class Decoded:
    """What was read of a list of files.

    Attributes:
        height: of all images.
        width: of all images.
        kept: rows of the list that are readable, (M,).
        broken: why the others are not, by row.
        images: the readable ones, uint8, (M, 3, height, width); ``None`` if they are too many to keep.
        checked: whether every file was decoded.
        remark: why they will be decoded again the next time; "" if they are kept.
    """

    height: int
    width: int
    kept: Tensor
    broken: dict[int, str]
    images: Tensor | None
    checked: bool
    remark: str = ""


def decode(paths: Sequence[str], reading: Reading) -> Decoded:
    """Decode files, or map what an earlier call has decoded.

    Args:
        paths: the files.
        reading: size and limits.
    """
    stats = [_stat(path) for path in paths]
    place = cache_dir() / "decoded" / f"{_key(paths, stats, reading)}.safetensors"
    found = _load(place, reading)
    if found is not None:
        return found
    with one_process(place.with_suffix(".lock")):
        found = _load(place, reading)  # another process may just have written it
        if found is not None:
            return found
        remove_leftovers(place)
        made = _decode(paths, stats, reading)
        remark = _save(place, made)
        return replace(made, remark=remark) if remark else _load(place, reading) or made


def _stat(path: str) -> tuple[int, int] | None:
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_size, stat.st_mtime_ns


def _key(paths: Sequence[str], stats: list[tuple[int, int] | None], reading: Reading) -> str:
    text = json.dumps([_FORMAT, reading.size, reading.memory, [os.path.abspath(path) for path in paths], stats])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _decode(paths: Sequence[str], stats: list[tuple[int, int] | None], reading: Reading) -> Decoded:
    broken = {row: "there is no such file" for row, stat in enumerate(stats) if stat is None}
    rows = [row for row in range(len(paths)) if row not in broken]
    # Tiny files are Python's work, not the decoder's: threads would only contend for the interpreter.
    tiny = sum(stat[0] for stat in stats if stat is not None) < _TINY * len(rows)
    workers = 1 if tiny else None
    height, width, unreadable = _common_size(paths, rows, reading.size, workers)
    broken |= unreadable
    rows = [row for row in rows if row not in broken]
    fits = len(rows) * 3 * height * width <= reading.memory * 1e9
    images = torch.empty(len(rows), 3, height, width, dtype=torch.uint8) if fits else None
    if fits or reading.check:
        reasons = _read_all([paths[row] for row in rows], images, height, width, workers)
        broken |= {row: reason for row, reason in zip(rows, reasons, strict=True) if reason}
        good = torch.tensor([not reason for reason in reasons], dtype=torch.bool)
        images = images[good] if images is not None and not good.all() else images
    kept = torch.tensor([row for row in rows if row not in broken], dtype=torch.int64)
    return Decoded(height, width, kept, broken, images, checked=fits or reading.check)


def _read_all(paths: Sequence[str], images: Tensor | None, height: int, width: int, workers: int | None) -> list[str]:
    """Decode files, into ``images`` if there is room, and tell for each why it cannot be read, or ""."""
    pixels = None if images is None else images.numpy()

    def read(row: int) -> str:
        image, reason = try_image(lambda: read_image(paths[row], height, width))
        if pixels is not None and image is not None:
            pixels[row] = image
        return reason

    with progress("decoding images", len(paths)) as done:
        return in_threads(read, range(len(paths)), workers=workers, done=done)


def _common_size(
    paths: Sequence[str], rows: list[int], size: int | None, workers: int | None
) -> tuple[int, int, dict[int, str]]:
    """Height and width to decode to, and the files whose header cannot be read."""
    if size is not None:
        return size, size, {}
    with progress("looking at images", len(rows)) as done:
        seen = in_threads(lambda row: try_image(lambda: image_size(paths[row])), rows, workers=workers, done=done)
    sizes = {found for found, reason in seen if not reason}
    unreadable = {row: reason for row, (_, reason) in zip(rows, seen, strict=True) if reason}
    if len(sizes) == 1:
        height, width = sizes.pop()
        if min(height, width) <= _STORED:
            return height, width, unreadable
    return _STORED, _STORED, unreadable


def _save(place: Path, decoded: Decoded) -> str:
    """Write the cache, or tell why it cannot be written."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    tensors = {"kept": decoded.kept} | ({} if decoded.images is None else {"images": decoded.images})
    facts = {"height": decoded.height, "width": decoded.width, "checked": decoded.checked, "broken": decoded.broken}
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(place) as file:  # by name: gigabytes of images are not copied into one text of bytes first
            save_file(tensors, file.name, metadata={"format": _FORMAT, "facts": json.dumps(facts)})
    except (OSError, SafetensorError) as error:
        room = sum(tensor.nbytes for tensor in tensors.values()) / 1e9
        wanted = f"set CLASSGAP_CACHE to a directory with room for {room:.2f} GB"
        return f"Decoded images are not kept for the next time ({error}): {wanted}."
    return ""


def _load(place: Path, reading: Reading) -> Decoded | None:
    """What the cache has, its images mapped; ``None`` if it has nothing, or nothing whole."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(place, "pt") as file:  # refuses a file whose length does not fit its header
            facts = json.loads(file.metadata()["facts"])
            tensors = {name: file.get_tensor(name) for name in list(file.keys())}
        kept, images = tensors["kept"], tensors.get("images")
        found = Decoded(
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
    return found if fits and (found.checked or not reading.check) else None
