"""Seeds and states of the random number generators."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

# A large stride keeps the streams of different seeds and processes apart.
_PROCESS_STRIDE = 1_000_003


def seed_everything(seed: int, process: int = 0) -> None:
    """Seed the generators of Python, NumPy and torch; each process has its own stream."""
    value = (seed + process * _PROCESS_STRIDE) % 2**32
    random.seed(value)
    np.random.seed(value)
    torch.manual_seed(value)


def random_state() -> dict[str, Any]:
    """Return the state of all generators as plain numbers and lists."""
    kind, keys, position, has_gauss, gauss = np.random.get_state(legacy=True)
    state = {
        "python": list(random.getstate()),
        "numpy": [kind, np.asarray(keys).tolist(), int(position), int(has_gauss), float(gauss)],
        "torch": torch.get_rng_state().tolist(),
    }
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state().tolist()
    return state


def restore_random_state(state: dict[str, Any]) -> None:
    """Restore the state of all generators."""
    version, internal, gauss = state["python"]
    random.setstate((version, tuple(internal), gauss))
    kind, keys, position, has_gauss, cached = state["numpy"]
    np.random.set_state((kind, np.array(keys, dtype=np.uint32), position, has_gauss, cached))
    torch.set_rng_state(torch.tensor(state["torch"], dtype=torch.uint8))
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(torch.tensor(state["cuda"], dtype=torch.uint8))


@contextmanager
def preserve_random_state() -> Iterator[None]:
    """Restore the state of all generators on exit; also a decorator.

    >>> with preserve_random_state():
    ...     seed_everything(1)
    ...     first = torch.rand(1)
    >>> bool(torch.rand(1) == first)
    False
    """
    state = random_state()
    try:
        yield
    finally:
        restore_random_state(state)
