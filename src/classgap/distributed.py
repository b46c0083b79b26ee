"""The only module that uses ``torch.distributed``; every function also works in a single process.

Each of W processes computes the terms of its own samples against the batch of all processes. Data-parallel training
averages gradients over processes. A sum over all samples is therefore back-propagated as W times each process's part,
and gradients with respect to another process's features are sent back to that process.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.utils.hooks import RemovableHandle

# Rank 0 may download and decode for hours while the others wait. A short timeout is not needed to notice a process that
# died, because torchrun then terminates the others.
TIMEOUT = timedelta(days=7)
# Errors of gloo and NCCL in the processes that remain; neither has an exception class for them.
_LOST = ("closed by peer", "reset by peer", "Broken pipe", "remote process exited", "Connection refused")


def world_size() -> int:
    """Return the number of processes; 1 if ``torch.distributed`` is not initialized.

    >>> world_size()
    1
    """
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Return the global rank of this process; 0 if ``torch.distributed`` is not initialized.

    >>> rank()
    0
    """
    return dist.get_rank() if world_size() > 1 else 0


def init(init_method: str, rank: int, world_size: int, timeout: timedelta) -> None:
    """Initialize a gloo process group with an address such as ``file:///tmp/rendezvous``."""
    dist.init_process_group("gloo", init_method=init_method, rank=rank, world_size=world_size, timeout=timeout)


def init_from_env(device: torch.device) -> bool:
    """Initialize the process group of ``torchrun``.

    Returns:
        False if the process was not launched by torchrun or is already initialized.
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ or dist.is_initialized():
        return False
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=TIMEOUT)
    return True


def destroy() -> None:
    """Destroy the process group, if there is one."""
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()


def is_lost_connection(error: BaseException) -> bool:
    """Return whether a collective failed because another process ended.

    >>> is_lost_connection(RuntimeError("Connection closed by peer [127.0.0.1]:6368")), is_lost_connection(ValueError())
    (True, False)
    """
    return isinstance(error, RuntimeError) and any(text in str(error) for text in _LOST)


def barrier() -> None:
    """Wait until all processes have reached this call."""
    if world_size() > 1:
        dist.barrier()


def broadcast_object(value: Any) -> Any:
    """Return the value of rank 0 on every process; any JSON-serializable value."""
    return all_gather_object(value)[0]


def all_gather_object(value: Any) -> list[Any]:
    """Return the values of all processes in rank order; any JSON-serializable values.

    >>> all_gather_object({"seen": 3})
    [{'seen': 3}]
    """
    if world_size() == 1:
        return [value]
    # JSON, because unpickling can execute code.
    text = torch.tensor(list(json.dumps(value).encode()), dtype=torch.uint8, device=_backend_device())
    shards = Shards.from_batch_size(len(text), text.device)
    return [json.loads(bytes(part.tolist())) for part in shards.gather(text).split(shards.sizes)]


def all_gather(values: Tensor) -> Tensor:
    """Stack the tensors of all processes, which have one shape and dtype, in rank order.

    >>> all_gather(torch.tensor([1, 2]))
    tensor([[1, 2]])
    """
    if world_size() == 1:
        return values[None]
    mine = values.detach().to(_backend_device())
    gathered = [torch.empty_like(mine) for _ in range(world_size())]
    dist.all_gather(gathered, mine)
    return torch.stack(gathered)


def gather_rows(rows: Tensor, *, chunk_bytes: int = 2**26) -> Tensor:
    """Concatenate the rows of all processes in rank order, on the CPU of every process.

    Rows are exchanged in chunks, so that the devices hold at most W chunks at a time.

    Args:
        rows: Rows of this process, on any device; their width and dtype are the same on every process.
        chunk_bytes: Size of a chunk.

    >>> gather_rows(torch.tensor([[1, 2]]))
    tensor([[1, 2]])
    """
    rows = rows.cpu()
    if world_size() == 1:
        return rows
    device = _backend_device()
    sizes = Shards.from_batch_size(len(rows), device).sizes
    result = rows.new_empty((sum(sizes), *rows.shape[1:]))
    step = max(1, chunk_bytes // max(1, math.prod(rows.shape[1:]) * rows.element_size()))
    for start in range(0, max(sizes), step):
        chunk = Shards(tuple(min(max(size - start, 0), step) for size in sizes), rank())
        gathered = chunk.gather(rows[start : start + step].to(device)).split(chunk.sizes)
        for part, received in zip(result.split(sizes), gathered, strict=True):
            part[start : start + step] = received
    return result


def all_reduce_sum(values: Tensor) -> Tensor:
    """Return the sum of the tensors of all processes.

    >>> all_reduce_sum(torch.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    return _all_reduce(values, dist.ReduceOp.SUM) if world_size() > 1 else values


def all_reduce_max(value: int) -> int:
    """Return the largest of the integers of all processes."""
    return int(_all_reduce(torch.tensor(value), dist.ReduceOp.MAX)) if world_size() > 1 else value


def all_agree(ok: bool) -> bool:
    """Return True if and only if ``ok`` is true on every process."""
    return all_reduce_max(0 if ok else 1) == 0


def _all_reduce(values: Tensor, operation: Any) -> Tensor:
    reduced = values.detach().to(_backend_device(), copy=True)
    dist.all_reduce(reduced, operation)
    return reduced.to(values.device)


def _backend_device() -> torch.device:
    """The device from which the backend can exchange tensors."""
    return torch.device("cuda", torch.cuda.current_device()) if dist.get_backend() == "nccl" else torch.device("cpu")


def average_gradients(module: nn.Module) -> list[RemovableHandle]:
    """Average a module's gradients over the processes, as DistributedDataParallel does for a model.

    Each parameter is averaged on its own as soon as its gradient is computed, which suits few and small parameters such
    as those of a loss. Every process also receives the parameters of rank 0.

    Returns:
        Handles that stop the averaging when removed.
    """
    if world_size() == 1:
        return []
    for parameter in module.parameters():
        dist.broadcast(parameter.data, src=0)
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    return [parameter.register_post_accumulate_grad_hook(_average_gradient) for parameter in trained]


def broadcast_buffers(*modules: nn.Module) -> None:
    """Give every process the buffers of rank 0, such as the running statistics of batch norm."""
    if world_size() > 1:
        for module in modules:
            for buffer in module.buffers():
                dist.broadcast(buffer, src=0)


def _average_gradient(parameter: Tensor) -> None:
    assert parameter.grad is not None
    dist.all_reduce(parameter.grad)
    parameter.grad /= world_size()


@dataclass(frozen=True)
class Shards:
    """How the samples of one batch are distributed over the processes.

    With a single shard every method returns its argument and does not communicate.

    >>> shards = Shards.from_batch_size(3, torch.device("cpu"))
    >>> shards.total, shards.first
    (3, 0)
    """

    sizes: tuple[int, ...]
    rank: int = 0

    @classmethod
    def from_batch_size(cls, samples: int, device: torch.device, *, joint: bool = True) -> Shards:
        """Exchange the local batch sizes; with ``joint=False`` (evaluation) this process is on its own."""
        if not joint or world_size() == 1:
            return cls((samples,))
        sizes = all_gather(torch.full((1,), samples, device=device)).flatten().tolist()  # one read from the device
        return cls(tuple(sizes), rank())

    @property
    def total(self) -> int:
        """Number of samples in the global batch of all processes."""
        return sum(self.sizes)

    @property
    def first(self) -> int:
        """Position of the first local sample in the global batch."""
        return sum(self.sizes[: self.rank])

    @property
    def mine(self) -> slice:
        """Positions of the local samples in the global batch."""
        return slice(self.first, self.first + self.sizes[self.rank])

    def gather(self, local: Tensor) -> Tensor:
        """Concatenate the rows of all processes in rank order; gradients flow back to the process that owns a row."""
        if len(self.sizes) == 1:
            return local
        return _Gather.apply(local, self)

    def sums(self, *parts: Tensor) -> tuple[Tensor, ...]:
        """Sum each number over the processes.

        Gradients are multiplied by the number of processes. After data-parallel averaging they equal the gradients of a
        single process on the global batch.
        """
        if len(self.sizes) == 1:
            return parts
        return _Sum.apply(torch.stack(parts), len(self.sizes)).unbind()


class _Gather(torch.autograd.Function):
    """All-gather of shards of different sizes; backward sums over processes and returns the local rows."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, shards: Shards) -> Tensor:
        ctx.shards = shards
        # Collectives need equal shapes: pad to the longest shard, trim afterward.
        padded = local.new_zeros((max(shards.sizes), *local.shape[1:]))
        padded[: local.shape[0]] = local
        parts = [torch.empty_like(padded) for _ in shards.sizes]
        dist.all_gather(parts, padded)
        return torch.cat([part[:size] for part, size in zip(parts, shards.sizes, strict=True)])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        shards: Shards = ctx.shards
        grad = grad.contiguous().clone()
        dist.all_reduce(grad)
        return grad[shards.mine], None


class _Sum(torch.autograd.Function):
    """All-reduce whose backward scales by the number of processes instead of communicating."""

    @staticmethod
    def forward(ctx: Any, part: Tensor, processes: int) -> Tensor:
        ctx.processes = processes
        total = part.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad * ctx.processes, None
