"""Run code in a copy of the test process: it has imported torch already, which takes a new interpreter seconds."""

from __future__ import annotations

import multiprocessing
import os
import socket
import sys
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

from classgap.__main__ import run


def run_forked(function: Callable[..., Any], *args: Any) -> Any:
    """Return ``function(*args)``, computed in another process; an error there is an error here."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=_answer, args=(theirs, function, args))
    process.start()
    theirs.close()
    try:
        succeeded, answer = ours.recv()
    except EOFError:
        process.join()
        raise RuntimeError(f"the process ended with exit code {process.exitcode}") from None
    process.join()
    if not succeeded:
        raise RuntimeError(answer)
    return answer


def run_command(words: Sequence[str], stdout: int, stderr: int) -> int:
    """Run ``classgap WORDS…`` as a process with these file descriptors and return its exit code."""
    process = multiprocessing.get_context("fork").Process(target=_command, args=(words, stdout, stderr))
    process.start()
    process.join()
    assert process.exitcode is not None
    return process.exitcode


def run_ranks(function: Callable[..., Any], *args: Any, world_size: int = 2) -> None:
    """Run ``function(*args)`` in processes with the environment variables of torchrun; an error there is an error here.

    torchrun itself imports torch once more, and so do its processes.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with ThreadPoolExecutor(world_size) as threads:
        ranks = [
            threads.submit(run_forked, _run_rank, rank, world_size, port, function, args) for rank in range(world_size)
        ]
    for rank in ranks:
        rank.result()


def _run_rank(rank: int, world_size: int, port: int, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    count = str(world_size)
    places = {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "GROUP_RANK": "0",
        "WORLD_SIZE": count,
        "LOCAL_WORLD_SIZE": count,
    }
    os.environ |= places | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": "test"}
    function(*args)


def _answer(connection: Connection, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    try:
        answer = (True, function(*args))
    except BaseException:
        answer = (False, traceback.format_exc())
    connection.send(answer)
    os._exit(0)  # the copy of the test process must not run its exit handlers


def _command(words: Sequence[str], stdout: int, stderr: int) -> None:
    code = -1
    try:
        for source, target in ((stdout, 1), (stderr, 2)):
            os.dup2(source, target)
        sys.stdout, sys.stderr = (os.fdopen(target, "w", closefd=False) for target in (1, 2))
        sys.argv = ["classgap", *words]
        run()
    except SystemExit as end:
        code = int(end.code or 0)
        sys.stdout.flush()
    finally:
        os._exit(code)
