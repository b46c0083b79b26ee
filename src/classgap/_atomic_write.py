"""Files that are written whole or not at all."""

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

_TEMPORARY = re.compile(r"\..+\.\d+-[0-9a-f]{16}\.tmp")


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to, which takes its place at ``path`` when all of it is on the disk.

    Until then, and for good if anything fails, ``path`` holds what it held before. A process that is killed leaves a
    hidden file beside it; `remove_leftovers` finds those. A symbolic link stays, and what it points to is written. A
    pipe or a device is written to as it is: there is nothing to put in its place.

    Raises:
        OSError: if the file cannot be written; `FileNotFoundError` with the directory's name if there is none.
    """
    if _is_stream(path):
        with open(path, "wb") as stream:
            yield stream
        return
    target = _behind_links(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(8)}.tmp")
    try:
        file = open(temporary, "xb")  # noqa: SIM115  # the usual permissions, unlike those of tempfile
    except FileNotFoundError as error:
        raise FileNotFoundError(error.errno, "There is no such directory, make it first", str(target.parent)) from None
    except OSError as error:
        error.filename = str(target)  # nobody knows the temporary name
        raise
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # a full disk may not be noticed before
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _is_stream(path: str | os.PathLike[str]) -> bool:
    """Whether ``path`` is there and is neither a file nor a directory: a pipe, a terminal, another device.

    >>> _is_stream(os.devnull), _is_stream(os.curdir), _is_stream("not/there")
    (True, False, False)
    """
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _behind_links(path: str | os.PathLike[str]) -> Path:
    return Path(os.path.realpath(path)) if os.path.islink(path) else Path(path)  # errors name a path as it was given


def atomic_write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write ``text`` to ``path``, which at no time holds half of it; what was there stays if writing fails."""
    with atomic_write(path) as file:
        file.write(text.encode("utf-8"))


def remove_leftovers(place: Path) -> None:
    """Delete what killed processes left half written: of a file, or in a directory and below it.

    Args:
        place: the file or directory; nothing may be writing to it, and it need not exist.
    """
    real = _behind_links(place)
    beside = () if place.is_dir() else real.parent.glob(f".{glob.escape(real.name)}.*.tmp")
    for path in (*place.rglob(".*.tmp"), *beside):
        if _TEMPORARY.fullmatch(path.name) and path.is_file():
            path.unlink(missing_ok=True)
