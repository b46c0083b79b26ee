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

# Doctests are not looked for in these files: pytest cannot import several modules of one name to do so.
collect_ignore_glob = ["*conftest.py"]

# The fewest steps of t-SNE, a quarter of the default. Text, because other processes cannot import this file.
SHORT_MAPS = "from classgap.audit import build; build.STEPS = 250"


@pytest.fixture(scope="session")
def processes() -> Iterator[Processes]:
    """Two worker processes in one gloo group, started once for all tests."""
    with Processes(2) as workers:
        workers.run(exec, SHORT_MAPS)
        yield workers


@pytest.fixture(scope="session", autouse=True)
def _short_maps() -> None:
    """Most audits are tested for something else than their map; ``audit/test_embedding_map.py`` has the default."""
    exec(SHORT_MAPS)


@pytest.fixture(scope="session", autouse=True)
def _wandb_folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    """wandb reads this once per process, and would write to the current folder."""
    os.environ["WANDB_DIR"] = str(tmp_path_factory.mktemp("wandb"))


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
