"""Worker processes in one gloo group that are reused between jobs."""

from __future__ import annotations

import multiprocessing
import tempfile
import traceback
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any


class Processes:
    """``count`` processes that run the same function together, like processes launched by ``torchrun``.

    They connect through a file, so no port is needed. A job is an importable function with picklable arguments. If a
    job fails or hangs on one process, ``run`` raises with its traceback.

    >>> import classgap.distributed
    >>> with Processes(2) as processes:  # doctest: +SKIP
    ...     processes.run(classgap.distributed.world_size)
    [2, 2]
    """

    def __init__(self, count: int = 2, *, timeout: float = 120.0) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._timeout = timeout
        context = multiprocessing.get_context("spawn")
        rendezvous = (Path(self._folder.name) / "rendezvous").as_uri()
        self._connections: list[Connection] = []
        self._workers = []
        for rank in range(count):
            ours, theirs = context.Pipe()
            worker = context.Process(target=_serve, args=(theirs, rank, count, rendezvous, timeout), daemon=True)
            worker.start()
            self._connections.append(ours)
            self._workers.append(worker)

    def run(self, job: Callable[..., Any], *args: Any) -> list[Any]:
        """Run ``job(*args)`` on every process and return the results in rank order."""
        for connection in self._connections:
            connection.send((job, args))
        answers = []
        for rank, connection in enumerate(self._connections):
            if not connection.poll(self._timeout):
                self.close()
                raise RuntimeError(f"process {rank} did not finish within {self._timeout:g} s; a collective may hang")
            answers.append(connection.recv())
        failures = [f"process {rank}:\n{text}" for rank, (ok, text) in enumerate(answers) if not ok]
        if failures:
            raise RuntimeError("\n".join(failures))
        return [result for _, result in answers]

    def close(self) -> None:
        """Terminate the processes."""
        for worker in self._workers:
            worker.terminate()
            worker.join()
        self._folder.cleanup()

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _serve(connection: Connection, rank: int, count: int, rendezvous: str, timeout: float) -> None:
    import torch

    from classgap.distributed import init

    torch.set_num_threads(1)
    init(rendezvous, rank, count, timedelta(seconds=timeout))
    while True:
        job, args = connection.recv()
        try:
            connection.send((True, job(*args)))
        except Exception:
            connection.send((False, traceback.format_exc()))
