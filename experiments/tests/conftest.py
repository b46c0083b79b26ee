import importlib
import sys
from pathlib import Path

import pytest

from classgap.methods import METHODS
from classgap.models import MODELS

HERE = Path(__file__).parents[2] / "experiments" / "mr2"


@pytest.fixture(scope="module")
def study():
    """Import the study; remove the methods and models that it registers afterward."""
    before = [(registry, dict(registry.entries)) for registry in (METHODS, MODELS)]
    search_path = list(sys.path)
    sys.path.insert(0, str(HERE))
    yield importlib.import_module("study")
    sys.path[:] = search_path
    ours = {"stress_strength", "forms", *(path.stem for path in HERE.glob("*.py"))}
    for name in [name for name in sys.modules if name.split(".")[0] in ours]:
        del sys.modules[name]
    for registry, entries in before:
        registry.entries.clear()
        registry.entries.update(entries)
