"""Writing into a module's buffers."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def write(module: nn.Module, name: str, values: Tensor, places: Tensor | None = None) -> None:
    """Set a buffer to ``values``, or only its ``places`` (first dimension), in place.

    Compiled code puts a new tensor in the buffer's place instead. Its backward may compute again, from the buffer,
    what forward computed before the write; had the write been in place, it would silently see the later values.
    """
    buffer: Tensor = getattr(module, name)
    values = values.to(buffer.dtype)
    if torch.compiler.is_compiling():
        setattr(module, name, values if places is None else buffer.index_copy(0, places, values))
    elif places is None:
        buffer.copy_(values)
    else:
        buffer.index_copy_(0, places, values)
