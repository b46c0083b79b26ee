"""Directories of downloads and decoded images, and file locks in them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path


def cache_dir() -> Path:
    """Return ``$CLASSGAP_CACHE`` or ``~/.cache/classgap``. Its contents can be deleted at any time."""
    return Path(os.path.expanduser(os.environ.get("CLASSGAP_CACHE") or "~/.cache/classgap"))


def data_root() -> Path:
    """Return the directory of downloads: ``$CLASSGAP_DATA``, or ``data`` in the cache."""
    given = os.environ.get("CLASSGAP_DATA")
    return Path(os.path.expanduser(given)) if given else cache_dir() / "data"


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on ``path``, where the file system supports it. It ends with the process."""
    with ExitStack() as stack:
        try:
            import fcntl

            path.parent.mkdir(parents=True, exist_ok=True)
            handle = stack.enter_context(path.open("w"))
            fcntl.flock(handle, fcntl.LOCK_EX)
        except (ImportError, OSError):  # without a lock, processes repeat the work, which is slow but correct
            pass
        yield
