"""Imports of optional dependencies."""

from __future__ import annotations

import importlib
from typing import Any


def package(name: str, model: str) -> Any:
    """Import a package that a model requires.

    Raises:
        ValueError: If the package is not installed; the message shows how to install it.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ValueError(f"model {model} requires {error.name}: pip install 'classgap[vision]'.") from error
