"""Work ahead of whoever uses the results."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Given = TypeVar("Given")
Result = TypeVar("Result")


def prefetched(work: Callable[[Given], Result], items: Iterable[Given], ahead: int = 2) -> Generator[Result]:
    """``work`` of each item in order, the next ``ahead`` of them on one thread in the background.

    An error of the work is raised where its result is asked for; the thread ends with the iterator.

    >>> list(prefetched(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    pool = ThreadPoolExecutor(1, thread_name_prefix="classgap-prefetch")
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
