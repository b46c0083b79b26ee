"""Import the scripts of the repository that are outside the package: benchmarks, examples, generators of pages."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]


def load_script(path: str) -> ModuleType:
    """Import a script, which may import those beside it.

    Args:
        path: path from the root of the repository.
    """
    script = ROOT / path
    sys.path.insert(0, str(script.parent))
    try:
        return importlib.import_module(script.stem)
    finally:
        sys.path.remove(str(script.parent))
