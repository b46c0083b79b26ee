"""Fixtures that every test file may use."""

import os

# Tests are many small operations in several processes: threads would only wait for each other. The variable has to be
# set before numpy, scipy and torch are imported, and holds for the processes that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from collections.abc import Iterator

import pytest

from browser import Browser, find_chromium
from classgap.testing import Processes
from classgap.testing.loss_case import seed_torch


@pytest.fixture(scope="session")
def processes() -> Iterator[Processes]:
    """Two worker processes in one gloo group, started once for all tests."""
    with Processes(2) as workers:
        yield workers


@pytest.fixture(autouse=True)
def _seeded() -> None:
    seed_torch()


@pytest.fixture(scope="session")
def page() -> Iterator[Browser]:
    """A page in headless Chromium."""
    if find_chromium() is None:
        pytest.skip("chromium is not installed: pages are not tested in a browser (apt-get install chromium)")
    with Browser() as browser:
        yield browser
