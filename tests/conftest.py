"""Fixtures that every test file may use."""

from collections.abc import Iterator

import pytest
import torch

from classgap.testing import Processes


@pytest.fixture(scope="session")
def processes() -> Iterator[Processes]:
    """Two worker processes in one gloo group, started once for all tests."""
    with Processes(2) as workers:
        yield workers


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


# Tests are many small operations: threads would only wait for each other.
torch.set_num_threads(1)
