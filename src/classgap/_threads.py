"""Context managers for work that several threads slow down."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]


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


@contextmanager
def single_blas_thread() -> Iterator[None]:
    """Run the linear algebra of numpy and scipy on one thread, which :func:`single_thread` does not affect.

    L-BFGS solves systems of a few unknowns in each step. With idle threads spinning on a busy machine, this took three
    times as long as the objective.
    """
    with _blas().limit(limits=1):
        yield


@cache
def _blas() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401  # has a BLAS of its own, which is found once it is loaded

    return ThreadpoolController().select(user_api="blas")
