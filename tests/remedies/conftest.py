"""A worker process for searches."""

import os
from collections.abc import Iterator

import pytest

from classgap.engine.executors import ProcessExecutor, Workers


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    """One process that has started, so that budgets do not pay for that."""
    with ProcessExecutor(1) as executor:
        executor.submit(os.getpid).result()
        yield Workers(executor, lambda: 1)
