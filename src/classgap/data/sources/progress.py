"""A progress bar for what takes long, on a terminal only."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from classgap import distributed

_PATIENCE = 2.0  # seconds without a bar


@contextmanager
def progress(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """Give a function that is told how many more are done, from any thread.

    The bar appears on standard error after two seconds, if that is a terminal and this is the first process.

    >>> with progress("counting", 3) as done:
    ...     done(3)
    """
    if not sys.stderr.isatty() or distributed.rank() != 0:
        yield lambda more: None
        return
    started, finished, lock = time.monotonic(), 0, threading.Lock()
    show: Callable[[int], None] | None = None
    with ExitStack() as stack:

        def done(more: int) -> None:
            nonlocal finished, show
            with lock:
                finished += more
                if show is None and time.monotonic() - started > _PATIENCE:
                    show = _bar(stack, title, total)
                if show is not None:
                    show(finished)

        yield done


def _bar(stack: ExitStack, title: str, total: int) -> Callable[[int], None]:
    from rich.console import Console
    from rich.progress import Progress

    bar = stack.enter_context(Progress(console=Console(stderr=True), transient=True))
    task = bar.add_task(title, total=total)
    return lambda finished: bar.update(task, completed=finished)
