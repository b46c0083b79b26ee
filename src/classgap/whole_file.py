"""Files that are written whole or not at all."""

from __future__ import annotations

import glob
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_TEMPORARY = re.compile(r"\..+\.\d+-[0-9a-f]{16}\.tmp")


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to, which takes its place at ``path`` when all of it is on the disk.

    Until then, and for good if anything fails, ``path`` holds what it held before. A process that is killed leaves a
    hidden file beside it; `remove_leftovers` finds those.

    Raises:
        OSError: if the file cannot be written; `FileNotFoundError` with the directory's name if there is none.
    """
    target = Path(path)
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


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """Write ``text`` to ``path``, which at no time holds half of it; what was there stays if writing fails."""
    with whole_file(path) as file:
        file.write(text.encode("utf-8"))


def remove_leftovers(place: Path) -> None:
    """Delete what killed processes left half written: of a file, or in a directory and below it.

    Args:
        place: the file or directory; nothing may be writing to it, and it need not exist.
    """
    beside = () if place.is_dir() else place.parent.glob(f".{glob.escape(place.name)}.*.tmp")
    for path in (*place.rglob(".*.tmp"), *beside):
        if _TEMPORARY.fullmatch(path.name) and path.is_file():
            path.unlink(missing_ok=True)
