"""Count how often code reads tensor values to the host, which on a GPU waits for all queued work.

It works on CPU tensors as a stand-in for a GPU: it counts operations whose result the host needs, wherever they run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

# Operations that return a number, or a shape that depends on values.
READING_OPS = {
    "_local_scalar_dense",
    "_unique2",
    "bincount",
    "equal",
    "is_nonzero",
    "item",
    "masked_select",
    "nonzero",
    "repeat_interleave",
    "unique_consecutive",
    "unique_dim",
}
# Methods that copy to the host without an operation if the tensor is on the CPU.
READING_METHODS = {Tensor.tolist: "tolist", Tensor.numpy: "numpy", Tensor.cpu: "cpu"}


@contextmanager
def count_host_reads() -> Iterator[Counter[str]]:
    """Count reads by operation while the context is active.

    >>> with count_host_reads() as reads:
    ...     x = torch.arange(3)
    ...     _ = x.sum().item(), x[x > 0], x.tolist(), x + 1
    >>> sorted(reads.items())
    [('_local_scalar_dense', 1), ('index', 1), ('tolist', 1)]
    """
    reads: Counter[str] = Counter()
    with _CountMethods(reads), _CountOperations(reads):
        yield reads


class _CountOperations(TorchDispatchMode):
    def __init__(self, reads: Counter[str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.reads = reads

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        known_size = name == "repeat_interleave" and kwargs.get("output_size") is not None
        if (name in READING_OPS and not known_size) or (name in ("index", "index_put_") and _has_mask(args[1])):
            self.reads[name] += 1
        return func(*args, **kwargs)


class _CountMethods(TorchFunctionMode):
    def __init__(self, reads: Counter[str]) -> None:
        super().__init__()
        self.reads = reads

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        if func in READING_METHODS:
            self.reads[READING_METHODS[func]] += 1
        return func(*args, **(kwargs or {}))


def _has_mask(indices: list[Tensor | None]) -> bool:
    return any(index is not None and index.dtype in (torch.bool, torch.uint8) for index in indices)
