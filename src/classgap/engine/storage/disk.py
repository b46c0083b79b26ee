"""One clear line when something cannot be written."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say which file could not be written, and why; what was there before is still there.

    Raises:
        OSError: in one line.
    """
    try:
        yield
    except (OSError, RuntimeError) as error:  # torch's writer turns a failed write into a RuntimeError
        reason = _reason(error)
        if reason is None:
            raise
        kept = "; the one before is kept" if path.exists() else ""
        raise OSError(
            f"{path} cannot be written: {reason}{kept}. Run the same command again when there is room."
        ) from None


def _reason(error: BaseException) -> str | None:
    """Why writing failed, if that is what failed."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno is not None:
            return f"{os.strerror(cause.errno)}{' (the disk is full)' if cause.errno in _FULL else ''}"
        cause = cause.__cause__ or cause.__context__
    return "writing failed" if "PytorchStreamWriter" in str(error) else None
