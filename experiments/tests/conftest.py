import importlib
import sys
from pathlib import Path

import pytest

from classgap.methods import METHODS
from classgap.models import MODELS

HERE = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def forms():
    """Import the methods of forms/; remove them from the registry afterward."""
    before = [(registry, dict(registry.entries)) for registry in (METHODS, MODELS)]
    search_path = list(sys.path)
    sys.path[:0] = [str(HERE), str(HERE.parent / "benchmarks")]
    yield importlib.import_module("forms")
    sys.path[:] = search_path
    for name in [name for name in sys.modules if name.split(".")[0] in ("forms", "stress_strength")]:
        del sys.modules[name]
    for registry, entries in before:
        registry.entries.clear()
        registry.entries.update(entries)
