"""Where tasks run: processes of this machine, or a Dask cluster, both behind ``concurrent.futures``."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import torch

P = ParamSpec("P")
R = TypeVar("R")

CONNECT_SECONDS = 30


@dataclass(frozen=True)
class Workers:
    """An executor and the number of tasks it runs at once.

    Attributes:
        executor: Runs the tasks.
        count: Returns the number of workers; it may change on a cluster.
    """

    executor: Executor
    count: Callable[[], int]


class ProcessExecutor(Executor):
    """Processes that fail one by one: the death of one breaks no task of the others, unlike in a process pool.

    Processes are spawned, share the threads of this process, ignore signals and end with this process.

    Args:
        n_workers: Number of processes.
    """

    def __init__(self, n_workers: int) -> None:
        self._threads = max(1, torch.get_num_threads() // n_workers)
        self._pools = [self._new_pool() for _ in range(n_workers)]
        self._pending: list[set[Future[Any]]] = [set() for _ in range(n_workers)]

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Run a function in the process with the fewest tasks; a dead process is replaced."""
        slot = min(range(len(self._pools)), key=lambda i: sum(not each.done() for each in self._pending[i]))
        try:
            future = self._pools[slot].submit(fn, *args, **kwargs)
        except BrokenProcessPool:
            self._pools[slot] = self._new_pool()
            future = self._pools[slot].submit(fn, *args, **kwargs)
        self._pending[slot] = {each for each in self._pending[slot] if not each.done()} | {future}
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes after their tasks."""
        for pool in self._pools:
            pool.shutdown(wait=wait, cancel_futures=cancel_futures)

    def _new_pool(self) -> ProcessPoolExecutor:
        # Spawned: threads of torch do not survive a fork.
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(1, context, initializer=_start_worker, initargs=(self._threads,))


def check_executor(text: str) -> tuple[str, str]:
    """Split the name of an executor into its kind and its argument.

    Raises:
        ValueError: If it is not ``process:N`` or ``dask:ADDRESS``.

    >>> check_executor("process:4"), check_executor("dask:tcp://10.0.0.1:8786")
    (('process', '4'), ('dask', 'tcp://10.0.0.1:8786'))
    """
    kind, _, argument = text.partition(":")
    valid = argument.isdecimal() and int(argument) > 0 if kind == "process" else kind == "dask" and argument
    if not valid:
        raise ValueError(
            f"executor must be process:N with N ≥ 1 processes, or dask:ADDRESS of a Dask scheduler; got {text!r}."
        )
    return kind, argument


@contextmanager
def open_executor(text: str) -> Iterator[Workers]:
    """Open the executor ``process:N`` or ``dask:ADDRESS``.

    Raises:
        ValueError: If it is invalid, its package is not installed, or the cluster cannot be reached or used.
    """
    kind, argument = check_executor(text)
    if kind == "process":
        n_workers = int(argument)
        with ProcessExecutor(n_workers) as executor:
            yield Workers(executor, lambda: n_workers)
    else:
        with _dask(argument) as workers:
            yield workers


@contextmanager
def _dask(address: str) -> Iterator[Workers]:
    try:
        from distributed import Client
    except ImportError:
        raise ValueError("executor dask needs distributed; run pip install 'classgap[cluster]'.") from None
    try:
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise ValueError(f"executor: no Dask scheduler answers at {address!r} ({error}).") from None
    with client:
        try:
            client.wait_for_workers(1, timeout=CONNECT_SECONDS)
        except TimeoutError:
            raise ValueError(f"executor: the Dask scheduler at {address} has no workers; start some.") from None
        _check_threads(client.nthreads())
        yield Workers(client.get_executor(pure=False), lambda: max(1, len(client.nthreads())))


def _check_threads(threads: dict[str, int]) -> None:
    """Training uses the global random state of its process, so a worker may run one at a time."""
    several = {name: count for name, count in threads.items() if count > 1}
    if several:
        name, count = next(iter(several.items()))
        raise ValueError(
            f"executor: the Dask worker {name} runs {count} tasks at once, but trials need a process each; start "
            "workers with --nthreads 1."
        )


def _start_worker(threads: int) -> None:
    torch.set_num_threads(threads)
    for number in (signal.SIGINT, signal.SIGTERM):  # Ctrl-C reaches all processes; the parent stops its tasks
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()  # a killed parent cannot stop its tasks; their checkpoints are complete at any moment
        os._exit(1)
