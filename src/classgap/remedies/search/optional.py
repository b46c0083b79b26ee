"""Optuna, which is optional."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


def require_optuna() -> ModuleType:
    """Return the package optuna.

    Raises:
        ValueError: If it is not installed, with the command that installs it.
    """
    try:
        import optuna
    except ImportError:
        raise ValueError("a search needs optuna; run pip install 'classgap[tune]'.") from None
    return optuna


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Silence messages about every trial, and about the experimental group option, which conditional settings need."""
    optuna = require_optuna()
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(before)
