"""What tests of data share: a cache of their own."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder that the test's process, and those it starts, use."""
    place = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("CLASSGAP_CACHE", str(place))
    monkeypatch.delenv("CLASSGAP_DATA", raising=False)
    return place
