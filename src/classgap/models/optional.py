"""Packages that come with an extra of classgap."""

from __future__ import annotations

import importlib
from typing import Any


def package(name: str, model: str) -> Any:
    """Import a package that the named model needs.

    Raises:
        ValueError: if it is not installed, with the command that installs it.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ValueError(f"model {model} needs {error.name}: pip install 'classgap[vision]'.") from error
