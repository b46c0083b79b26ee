"""Reject pipes and devices where a file is read: opening a pipe may wait forever, and a device may never end."""

from __future__ import annotations

import os
import stat


def check_regular_file(path: str | os.PathLike[str]) -> None:
    """Reject a pipe, a socket or a device; missing files and directories pass, because opening them fails.

    Raises:
        ValueError: with the path.

    >>> check_regular_file("does/not/exist")
    >>> check_regular_file("/dev/null")
    Traceback (most recent call last):
    ValueError: /dev/null is a pipe or a device, not a file: write its content to a file first.
    """
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise ValueError(f"{os.fspath(path)} is a pipe or a device, not a file: write its content to a file first.")
