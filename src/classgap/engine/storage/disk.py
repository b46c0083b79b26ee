"""Clear errors for files that cannot be written."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def explain_write_errors(path: Path) -> Iterator[None]:
    """Name the file and the reason if writing fails; the previous file is kept.

    Raises:
        OSError: With a message of one line.
    """
    try:
        yield
    except (OSError, RuntimeError) as error:  # torch's writer turns a failed write into a RuntimeError
        reason = _reason(error)
        if reason is None:
            raise
        kept = "; the previous file is kept" if path.exists() else ""
        raise OSError(f"cannot write {path}: {reason}{kept}. Fix this and run the same command to resume.") from None


def _reason(error: BaseException) -> str | None:
    """Return why writing failed, or ``None`` for other errors."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno is not None:
            return f"{os.strerror(cause.errno)}{' (the disk is full)' if cause.errno in _FULL else ''}"
        cause = cause.__cause__ or cause.__context__
    return "writing failed" if "PytorchStreamWriter" in str(error) else None
