"""The processes that ``torchrun`` launched for a prediction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from classgap.distributed import destroy, init_from_env, rank, world_size


@contextmanager
def process_group(device: torch.device) -> Iterator[tuple[int, int]]:
    """Join the other processes that ``torchrun`` launched, and yield the rank and the number of processes.

    >>> with process_group(torch.device("cpu")) as (number, total):
    ...     number, total
    (0, 1)
    """
    launched = init_from_env(device)
    try:
        yield rank(), world_size()
    finally:
        if launched:
            destroy()
