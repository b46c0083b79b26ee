"""Checksums of the text files of a directory, in ``checksums.json`` beside them.

A checksum covers the beginning of a file up to a length, so that lines can be appended before it is renewed. A file
without a checksum passes. Therefore a process may be killed at any moment: a file that is replaced loses its checksum
first.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from classgap._atomic_write import atomic_write_text
from classgap._regular_files import check_regular_file

CHECKSUMS = "checksums.json"


class DamagedTextError(ValueError):
    """A file does not match its checksum."""


@contextmanager
def renew_checksum(path: Path) -> Iterator[None]:
    """Remove the checksum of a file, which the block replaces, and store the new one.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "config.yaml"
    ...     with renew_checksum(file):
    ...         _ = file.write_text("lr: 0.1\\n")
    ...     check_text(file)
    ...     _ = file.write_text("lr: 0.3\\n")
    ...     check_text(file)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    DamagedTextError: config.yaml does not match its checksum …
    """
    stored = _read(path.parent)
    if stored.pop(path.name, None) is not None:
        _write(path.parent, stored)
    yield
    update_checksum(path)


def update_checksum(path: Path) -> None:
    """Store the checksum of a file as it is now; none if it does not exist."""
    if path.is_file():
        content = path.read_bytes()
        entry = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        _write(path.parent, _read(path.parent) | {path.name: entry})


def check_text(path: Path) -> None:
    """Check a file before it is read; missing files, and files without a checksum, pass.

    Raises:
        DamagedTextError: If it does not match its checksum.
        ValueError: If it is a pipe or a device, or ``checksums.json`` is damaged.
    """
    check_regular_file(path)
    entry = _read(path.parent).get(path.name)
    if entry is None or not path.is_file():
        return
    content = path.read_bytes()[: entry["bytes"]]
    if len(content) != entry["bytes"] or hashlib.sha256(content).hexdigest() != entry["sha256"]:
        raise DamagedTextError(
            f"{path} does not match its checksum, so it is damaged or was edited: restore it, or delete "
            f"{path.with_name(CHECKSUMS)} to skip the check."
        )


def _read(directory: Path) -> dict[str, Any]:
    path = directory / CHECKSUMS
    check_regular_file(path)
    if not path.exists():
        return {}
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        for entry in stored.values():
            if not (isinstance(entry["bytes"], int) and entry["bytes"] >= 0 and isinstance(entry["sha256"], str)):
                raise ValueError("not checksums")
        return dict(stored)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise ValueError(
            f"{path} is damaged: delete it to use the files in {directory} without checking them."
        ) from None


def _write(directory: Path, stored: dict[str, Any]) -> None:
    atomic_write_text(directory / CHECKSUMS, json.dumps(stored, indent=2, sort_keys=True) + "\n")
