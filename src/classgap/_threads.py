"""Context manager for work that several threads slow down."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def single_thread(*, when: bool = True) -> Iterator[None]:
    """Run torch on one thread: short operations gain nothing from more, and on a busy machine they wait for them.

    >>> before = torch.get_num_threads()
    >>> with single_thread():
    ...     torch.get_num_threads()
    1
    >>> torch.get_num_threads() == before
    True
    """
    threads = torch.get_num_threads()
    if when:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
