"""Give each data test its own empty cache."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Empty cache directory for the test and its subprocesses."""
    directory = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("CLASSGAP_CACHE", str(directory))
    monkeypatch.delenv("CLASSGAP_DATA", raising=False)
    return directory
