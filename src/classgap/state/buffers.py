"""In-place updates of buffers that also work in compiled code."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def write(module: nn.Module, name: str, values: Tensor, places: Tensor | None = None) -> None:
    """Set a buffer, or its rows ``places``, to ``values`` in place.

    Compiled code replaces the buffer with a new tensor instead: its backward may recompute intermediate values from the
    buffer, and would silently use the updated values after a write in place.
    """
    buffer: Tensor = getattr(module, name)
    values = values.to(buffer.dtype)
    if torch.compiler.is_compiling():
        setattr(module, name, values if places is None else buffer.index_copy(0, places, values))
    elif places is None:
        buffer.copy_(values)
    else:
        buffer.index_copy_(0, places, values)
