"""Run work in threads, with a progress bar on terminals."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

from classgap import distributed

_DELAY = 2.0  # seconds before the bar appears


def default_workers() -> int:
    """Number of CPUs this process may use, at most 16."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, 16)


def map_in_threads(
    work: Callable[[int], Any],
    rows: Sequence[int],
    *,
    workers: int | None = None,
    advance: Callable[[int], None] = lambda count: None,
) -> list[Any]:
    """Apply ``work`` to each row and return the results in order.

    Args:
        work: Function of a row.
        rows: Its arguments.
        workers: Number of threads. Defaults to one per CPU.
        advance: Called with the number of newly finished rows.
    """
    workers = default_workers() if workers is None else workers
    step = min(64, max(1, len(rows) // (4 * workers)))  # small chunks, so that no thread waits long for the last one
    chunks = [rows[start : start + step] for start in range(0, len(rows), step)]

    def run(chunk: Sequence[int]) -> list[Any]:
        results = [work(row) for row in chunk]
        advance(len(chunk))
        return results

    with ThreadPoolExecutor(workers) as pool:  # one pool per call survives forking and pickling
        return [result for results in pool.map(run, chunks) for result in results]


@contextmanager
def progress_bar(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """Yield a thread-safe function that advances the bar by a number of items.

    The bar appears on standard error after two seconds, on rank 0 and on a terminal only.

    >>> with progress_bar("counting", 3) as advance:
    ...     advance(3)
    """
    if not sys.stderr.isatty() or distributed.rank() != 0:
        yield lambda count: None
        return
    started, finished, lock = time.monotonic(), 0, threading.Lock()
    show: Callable[[int], None] | None = None
    with ExitStack() as stack:

        def advance(count: int) -> None:
            nonlocal finished, show
            with lock:
                finished += count
                if show is None and time.monotonic() - started > _DELAY:
                    show = _open_bar(stack, title, total)
                if show is not None:
                    show(finished)

        yield advance


def _open_bar(stack: ExitStack, title: str, total: int) -> Callable[[int], None]:
    from rich.console import Console
    from rich.progress import Progress

    bar = stack.enter_context(Progress(console=Console(stderr=True), transient=True))
    task = bar.add_task(title, total=total)
    return lambda finished: bar.update(task, completed=finished)
