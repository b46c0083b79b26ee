"""Read ``.npy`` and ``.npz`` files; sizes are checked before anything is allocated.

Large arrays are mapped into memory instead of read, so that the system loads and drops their pages as needed.
"""

from __future__ import annotations

import lzma
import math
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

MIN_BYTES = 2**20  # smaller arrays are read: their checksum is verified, and the file is not held open
BLOCK = 2**20  # bytes that are decompressed at a time
LOCAL_HEADER = struct.Struct("<4s22xHH")  # of a zip member: signature, lengths of name and extra field
ENCRYPTED = 0x1  # flag of a zip member
PICKLED = "it holds pickled objects, which are unsafe to load: save an array of numbers or strings"
TRUNCATED = "the file is truncated or damaged"
# numpy evaluates the header of an array as Python, and zipfile decompresses with four libraries.
_DAMAGED = (
    *(EOFError, LookupError, MemoryError, NotImplementedError, OverflowError, RecursionError, RuntimeError),
    *(SyntaxError, TypeError, ValueError, struct.error, tokenize.TokenError),
    *(lzma.LZMAError, zipfile.BadZipFile, zlib.error),
)


def map_npy(path: Path) -> NDArray[Any]:
    """Map a ``.npy`` file.

    Raises:
        ValueError: if the file is not a valid array, or holds pickled objects.
    """
    with path.open("rb") as file:
        try:
            return _map(path, file, offset=0, size=path.stat().st_size)
        except _DAMAGED as error:
            raise ValueError(_reason(error)) from None


def map_directory(path: Path) -> dict[str, NDArray[Any]]:
    """Map every ``.npy`` file of a directory, by its name.

    Raises:
        ValueError: if a file is not a valid array.
    """
    found = {}
    for file in sorted(path.glob("*.npy")):
        try:
            found[file.stem] = map_npy(file)
        except ValueError as error:
            raise ValueError(f"{file.name} is not a valid .npy file: {error}.") from None
    return found


def map_npz(path: Path, used: Callable[[str], bool] = lambda name: True) -> dict[str, NDArray[Any] | None]:
    """Read an ``.npz`` archive; large members that are stored without compression are mapped.

    Args:
        path: the archive.
        used: whether an array of this name is needed; others are ``None`` and never decompressed.

    Raises:
        ValueError: if the archive or an array in it is damaged, encrypted, larger than the memory, or holds pickled
            objects.
    """
    found: dict[str, NDArray[Any] | None] = {}
    name = None
    try:
        with zipfile.ZipFile(path) as members, path.open("rb") as file:
            for info in members.infolist():
                name = info.filename.removesuffix(".npy")
                found[name] = _read_member(path, file, members, info) if used(name) else None
    except _DAMAGED as error:
        where = "" if name is None else f"{name[:80]!r}: "
        raise ValueError(f"not a valid .npz archive of arrays: {where}{_reason(error)}.") from None
    return found


def npz_shapes(path: Path) -> dict[str, tuple[int, ...] | None]:
    """Return the shape of each array of an ``.npz`` archive from its header, ``None`` where it cannot be read."""
    found: dict[str, tuple[int, ...] | None] = {}
    try:
        with zipfile.ZipFile(path) as members:
            for info in members.infolist():
                name = info.filename.removesuffix(".npy")
                found[name] = None
                try:
                    with members.open(info) as stream:
                        found[name] = _read_header(stream)[0]
                except _DAMAGED:
                    continue
    except (OSError, *_DAMAGED):
        pass
    return found


def _read_member(path: Path, file: IO[bytes], members: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
    if info.flag_bits & ENCRYPTED:
        raise ValueError("it is encrypted; save it without a password")
    if info.compress_type == zipfile.ZIP_STORED and info.file_size >= MIN_BYTES:
        return _map(path, file, offset=_data_offset(file, info), size=info.file_size)
    with members.open(info) as stream:
        shape, fortran, kind = _read_header(stream)
        size = math.prod(shape) * kind.itemsize
        if size > info.file_size:
            raise ValueError("the array is truncated")
        if size > _memory():
            raise ValueError(f"it takes {size:,} bytes, more than the memory of this machine; save it uncompressed")
        content = np.empty(size, np.uint8)
        for start in range(0, size, BLOCK):  # a second copy may not fit
            block = stream.read(min(BLOCK, size - start))
            if len(block) < min(BLOCK, size - start):
                raise ValueError("the array is truncated")
            content[start : start + len(block)] = np.frombuffer(block, np.uint8)
        stream.read(1)  # the checksum is verified at the end
    return _to_array(content, shape, fortran, kind)


def _data_offset(file: IO[bytes], info: zipfile.ZipInfo) -> int:
    """Position of a member's first byte: the local header may have another extra field than the directory."""
    file.seek(info.header_offset)
    signature, name_length, extra_length = LOCAL_HEADER.unpack(file.read(LOCAL_HEADER.size))
    if signature != b"PK\x03\x04":
        raise zipfile.BadZipFile(info.filename)
    return info.header_offset + LOCAL_HEADER.size + name_length + extra_length


def _map(path: Path, file: IO[bytes], *, offset: int, size: int) -> NDArray[Any]:
    """Map the array in the ``.npy`` format that starts at ``offset`` and takes ``size`` bytes."""
    file.seek(offset)
    shape, fortran, kind = _read_header(file)
    start = file.tell()
    end = start + math.prod(shape) * kind.itemsize
    if end > min(offset + size, os.fstat(file.fileno()).st_size):
        raise ValueError("the array is truncated")
    if end == start or not shape:
        return _to_array(np.fromfile(file, np.uint8, end - start), shape, fortran, kind)
    # Copy-on-write: writable for torch, while the file never changes.
    return np.memmap(path, kind, "c", start, shape, "F" if fortran else "C")


def _read_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, kind = read_header(file)
    if kind.hasobject:
        raise ValueError(PICKLED)
    if any(length < 0 for length in shape):
        raise ValueError(f"the shape {shape} has a negative size")
    if not kind.itemsize:
        raise ValueError(f"values of type {kind} have a size of 0 bytes")
    return shape, fortran, kind


def _to_array(content: NDArray[np.uint8], shape: tuple[int, ...], fortran: bool, kind: np.dtype[Any]) -> NDArray[Any]:
    return np.ndarray(shape, kind, content, order="F" if fortran else "C")


def _memory() -> int:
    """Bytes of the machine's memory."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # Windows has no sysconf
        return 2**40


def _reason(error: BaseException) -> str:
    """Describe an error in one line: those of numpy and of this module say more than those of zlib."""
    if isinstance(error, NotImplementedError):
        return "its compression is not supported; use numpy.savez or numpy.savez_compressed"
    if isinstance(error, MemoryError):
        return "it does not fit in memory"
    if not isinstance(error, ValueError) or not str(error):
        return TRUNCATED
    return " ".join(str(error).split()).rstrip(".")[:200]
