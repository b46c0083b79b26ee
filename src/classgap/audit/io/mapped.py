"""Arrays that are mapped into memory instead of read, so that the system loads and drops their pages as needed."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

MIN_BYTES = 2**20  # smaller arrays are read: their checksum is verified, and the file is not held open
LOCAL_HEADER = struct.Struct("<4s22xHH")  # of a zip member: signature, lengths of name and extra field


def map_npy(path: Path) -> NDArray[Any]:
    """Map a ``.npy`` file.

    Raises:
        ValueError: if the file is not a valid array, or holds pickled objects.
    """
    with path.open("rb") as file:
        return _map(path, file, offset=0, size=path.stat().st_size)


def map_directory(path: Path) -> dict[str, NDArray[Any]]:
    """Map every ``.npy`` file of a directory, by its name.

    Raises:
        ValueError: if a file is not a valid array.
    """
    found = {}
    for file in sorted(path.glob("*.npy")):
        try:
            found[file.stem] = map_npy(file)
        except (ValueError, EOFError) as error:
            raise ValueError(f"{file.name} is not a valid .npy file: {str(error).rstrip('.')}.") from None
    return found


def map_npz(path: Path) -> dict[str, NDArray[Any]]:
    """Read an ``.npz`` archive; large members that are stored without compression are mapped.

    Raises:
        ValueError: if a member is not a valid array, or holds pickled objects.
        zipfile.BadZipFile: if the archive is damaged.
    """
    with np.load(path, allow_pickle=False) as archive, zipfile.ZipFile(path) as members, path.open("rb") as file:
        infos = {info.filename: info for info in members.infolist()}
        found = {}
        for name in archive.files:
            info = infos.get(f"{name}.npy")
            if info is None or info.compress_type != zipfile.ZIP_STORED or info.file_size < MIN_BYTES:
                found[name] = archive[name]
            else:
                found[name] = _map(path, file, offset=_data_offset(file, info), size=info.file_size)
        return found


def _data_offset(file: BinaryIO, info: zipfile.ZipInfo) -> int:
    """Position of a member's first byte: the local header may have another extra field than the directory."""
    file.seek(info.header_offset)
    signature, name_length, extra_length = LOCAL_HEADER.unpack(file.read(LOCAL_HEADER.size))
    if signature != b"PK\x03\x04":
        raise zipfile.BadZipFile(info.filename)
    return info.header_offset + LOCAL_HEADER.size + name_length + extra_length


def _map(path: Path, file: BinaryIO, *, offset: int, size: int) -> NDArray[Any]:
    """Map the array in the ``.npy`` format that starts at ``offset`` and takes ``size`` bytes."""
    file.seek(offset)
    version = np.lib.format.read_magic(file)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, kind = read_header(file)
    if kind.hasobject:
        raise ValueError("Object arrays cannot be loaded when allow_pickle=False")
    start = file.tell()
    if start - offset + int(np.prod(shape)) * kind.itemsize > size:
        raise ValueError("the array is truncated")
    if 0 in shape or not shape:
        return np.fromfile(file, kind, int(np.prod(shape))).reshape(shape)
    # Copy-on-write: writable for torch, while the file never changes.
    return np.memmap(path, kind, "c", start, shape, "F" if fortran else "C")
