"""The command line that is running, for pages that state how they were made."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

_WORDS: ContextVar[tuple[str, ...]] = ContextVar("words", default=())


@contextmanager
def invoked(words: Sequence[str]) -> Iterator[None]:
    """Remember the words of the command line, without the program's name, while the block runs."""
    token = _WORDS.set(tuple(words))
    try:
        yield
    finally:
        _WORDS.reset(token)


def command_line() -> str:
    """Return the running command as it can be pasted into a shell; empty outside of one.

    >>> with invoked(["audit", "my file.npz"]):
    ...     command_line()
    "classgap audit 'my file.npz'"
    """
    words = _WORDS.get()
    return shlex.join(["classgap", *words]) if words else ""
