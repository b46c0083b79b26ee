"""Atomic file writes."""

from __future__ import annotations

import glob
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_SURROGATE = re.compile("[\ud800-\udfff]")
_TEMPORARY = re.compile(r"\..+\.\d+-[0-9a-f]{16}\.tmp")


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces ``path`` once it is completely on disk.

    If anything fails, ``path`` is unchanged. A killed process leaves a hidden file next to ``path``; see
    :func:`remove_leftovers`. A symbolic link is kept, and its target is replaced. Pipes and devices are written
    directly.

    Raises:
        OSError: If the file cannot be written; a ``FileNotFoundError`` names the missing directory.
    """
    if _is_stream(path):
        with name_in_errors(path), open(path, "wb") as stream:
            yield stream
        return
    target = _resolve_link(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(8)}.tmp")
    try:
        file = open(temporary, "xb")  # noqa: SIM115  # the default permissions, unlike tempfile
    except FileNotFoundError as error:
        raise FileNotFoundError(
            error.errno, "the directory does not exist; create it first", str(target.parent)
        ) from None
    except OSError as error:
        error.filename = str(target)  # users do not know the temporary name
        raise
    try:
        with name_in_errors(target), file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # some file systems report a full disk only here
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def name_in_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Add the file to errors of the system, such as that of a full disk, which name none."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = os.fspath(path)
        raise


def _is_stream(path: str | os.PathLike[str]) -> bool:
    """Return whether ``path`` exists and is neither a file nor a directory: a pipe, a terminal or another device.

    >>> _is_stream(os.devnull), _is_stream(os.curdir), _is_stream("does/not/exist")
    (True, False, False)
    """
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _resolve_link(path: str | os.PathLike[str]) -> Path:
    return Path(os.path.realpath(path)) if os.path.islink(path) else Path(path)  # errors show the path as given


def atomic_write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write ``text`` to ``path`` atomically, encoded as UTF-8; see :func:`atomic_write`.

    Bytes of file names that are not UTF-8 are lone surrogates in Python; they become U+FFFD.
    """
    with atomic_write(path) as file:
        file.write(_SURROGATE.sub("\ufffd", text).encode("utf-8"))


def remove_leftovers(place: Path) -> None:
    """Delete the temporary files that killed processes left: of a file, or in a directory and its subdirectories.

    Args:
        place: File or directory, which need not exist. No process may be writing to it.
    """
    real = _resolve_link(place)
    beside = () if place.is_dir() else real.parent.glob(f".{glob.escape(real.name)}.*.tmp")
    for path in (*place.rglob(".*.tmp"), *beside):
        if _TEMPORARY.fullmatch(path.name) and path.is_file():
            path.unlink(missing_ok=True)
