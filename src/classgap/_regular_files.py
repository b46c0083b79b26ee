"""Reject what is no path, and pipes and devices: opening a pipe may wait forever, and a device may never end."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any


def to_path(what: str, value: Any, instead: str) -> Path:
    """Return a path.

    Raises:
        ValueError: if the value is no path.

    >>> to_path("folder", None, "pass a folder")
    Traceback (most recent call last):
    ValueError: folder must be the path of a file or directory, got a NoneType: pass a folder.
    """
    if not isinstance(value, str | os.PathLike):
        raise ValueError(f"{what} must be the path of a file or directory, got a {type(value).__name__}: {instead}.")
    return Path(value)


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
