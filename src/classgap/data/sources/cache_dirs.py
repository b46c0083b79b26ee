"""Where data and decoded images lie on disk, and one process at a time there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path


def cache_dir() -> Path:
    """``$CLASSGAP_CACHE``, or ``~/.cache/classgap``: all in it may be deleted at any time."""
    return Path(os.environ.get("CLASSGAP_CACHE") or "~/.cache/classgap").expanduser()


def data_root() -> Path:
    """``$CLASSGAP_DATA``, or ``data`` in the cache: where downloads go."""
    given = os.environ.get("CLASSGAP_DATA")
    return Path(given).expanduser() if given else cache_dir() / "data"


@contextmanager
def one_process(lock: Path) -> Iterator[None]:
    """Let the other processes wait for this one, as far as the system can; the lock ends with its process."""
    with ExitStack() as stack:
        try:
            import fcntl

            lock.parent.mkdir(parents=True, exist_ok=True)
            handle = stack.enter_context(lock.open("w"))
            fcntl.flock(handle, fcntl.LOCK_EX)
        except (ImportError, OSError):  # then work is done twice, which is slow and right
            pass
        yield
