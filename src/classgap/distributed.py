"""The one module that touches ``torch.distributed``; every function also works with one process.

The rule behind it: each of W processes computes the terms of *its* samples against the *whole* batch. Data-parallel
training averages gradients over processes, so a sum over all samples is back-propagated as W times each process's
share, and gradients that reach another process's features travel back to their owner.
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

# Process 0 may download and decode for hours while the others wait for it. No time limit is needed to notice a process
# that died: torchrun then ends them all.
PATIENCE = timedelta(days=7)


def world_size() -> int:
    """Number of processes, 1 when ``torch.distributed`` is not in use.

    >>> world_size()
    1
    """
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Number of this process, from 0; 0 when ``torch.distributed`` is not in use.

    >>> rank()
    0
    """
    return dist.get_rank() if world_size() > 1 else 0


def join(rendezvous: str, rank: int, processes: int, timeout: timedelta) -> None:
    """Make this process one of a gloo group that meets at an address such as ``file:///tmp/meeting``."""
    dist.init_process_group("gloo", init_method=rendezvous, rank=rank, world_size=processes, timeout=timeout)


def join_launched(device: torch.device) -> bool:
    """Become one of the processes that ``torchrun`` started; ``False`` if it did not start this one, or it is one."""
    if "TORCHELASTIC_RUN_ID" not in os.environ or dist.is_initialized():
        return False
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=PATIENCE)
    return True


def leave() -> None:
    """Leave the group, if this process is in one."""
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()


def wait_for_all() -> None:
    """Go on when every process is here."""
    if world_size() > 1:
        dist.barrier()


def from_first(value: Any) -> Any:
    """What process 0 has, on every process: numbers, texts, and lists and dictionaries of them."""
    if world_size() == 1:
        return value
    return gather_values(value)[0]


def gather_values(value: Any) -> list[Any]:
    """What each process has, in process order, on every process: numbers, texts, and lists and dictionaries of them.

    >>> gather_values({"seen": 3})
    [{'seen': 3}]
    """
    if world_size() == 1:
        return [value]
    # As JSON, which unlike pickle cannot run anything.
    text = torch.tensor(list(json.dumps(value).encode()), dtype=torch.uint8, device=_meeting_place())
    shards = Shards.from_batch_size(len(text), text.device)
    return [json.loads(bytes(part.tolist())) for part in shards.gather(text).split(shards.sizes)]


def gather_rows(rows: Tensor, *, at_a_time: int = 2**26) -> Tensor:
    """The rows of all processes in process order, on every process, on the CPU.

    They pass through the processes' devices in pieces: there never is more of them than W pieces.

    Args:
        rows: of this process, on any device; as wide and of the same type everywhere.
        at_a_time: bytes of a piece.

    >>> gather_rows(torch.tensor([[1, 2]]))
    tensor([[1, 2]])
    """
    rows = rows.cpu()
    if world_size() == 1:
        return rows
    place = _meeting_place()
    sizes = Shards.from_batch_size(len(rows), place).sizes
    whole = rows.new_empty((sum(sizes), *rows.shape[1:]))
    of_process = whole.split(sizes)
    step = max(1, at_a_time // max(1, math.prod(rows.shape[1:]) * rows.element_size()))
    for start in range(0, max(sizes), step):
        piece = Shards(tuple(min(max(size - start, 0), step) for size in sizes), rank())
        gathered = piece.gather(rows[start : start + step].to(place)).split(piece.sizes)
        for part, ready in zip(of_process, gathered, strict=True):
            part[start : start + step] = ready
    return whole


def total(values: Tensor) -> Tensor:
    """The sum of the processes' tensors, on every process.

    >>> total(torch.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    if world_size() == 1:
        return values
    summed = values.detach().to(_meeting_place(), copy=True)
    dist.all_reduce(summed)
    return summed.to(values.device)


def _meeting_place() -> torch.device:
    """Where tensors have to be to be exchanged."""
    return torch.device("cuda", torch.cuda.current_device()) if dist.get_backend() == "nccl" else torch.device("cpu")


def highest(code: int, device: torch.device) -> int:
    """The largest of the processes' numbers, on every process."""
    if world_size() == 1:
        return code
    box = torch.tensor(code, device=device)
    dist.all_reduce(box, dist.ReduceOp.MAX)
    return int(box)


def average_gradients(module: nn.Module) -> list[RemovableHandle]:
    """Average a module's gradients over the processes from now on, as DistributedDataParallel does for a model.

    It is for few and small parameters, such as those of a loss: each is averaged on its own as soon as its gradient
    is there. It also gives every process the parameters of process 0.

    Returns:
        what ends it again, if it is to end.
    """
    if world_size() == 1:
        return []
    for parameter in module.parameters():
        dist.broadcast(parameter.data, src=0)
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    return [parameter.register_post_accumulate_grad_hook(_average_gradient) for parameter in trained]


def share_buffers(*modules: nn.Module) -> None:
    """Give every process the buffers of process 0, such as the running statistics of batch norm."""
    if world_size() > 1:
        for module in modules:
            for buffer in module.buffers():
                dist.broadcast(buffer, src=0)


def _average_gradient(parameter: Tensor) -> None:
    assert parameter.grad is not None
    dist.all_reduce(parameter.grad)
    parameter.grad /= world_size()


def all_agree(ok: bool, device: torch.device) -> bool:
    """True on every process if and only if ``ok`` is true on every process."""
    if world_size() == 1:
        return ok
    failures = torch.tensor(0 if ok else 1, device=device)
    dist.all_reduce(failures)
    return bool(failures == 0)


@dataclass(frozen=True)
class Shards:
    """How the samples of one batch lie on the processes: how many on each, and which part is here.

    With a single shard every method returns what it was given, without any communication.

    >>> shards = Shards.from_batch_size(3, torch.device("cpu"))
    >>> shards.total, shards.first
    (3, 0)
    """

    sizes: tuple[int, ...]
    rank: int = 0

    @classmethod
    def from_batch_size(cls, samples: int, device: torch.device, *, joint: bool = True) -> Shards:
        """Exchange the local batch sizes; ``joint=False`` (evaluation) keeps to this process."""
        if not joint or world_size() == 1:
            return cls((samples,))
        mine = torch.tensor([samples], device=device)
        sizes = [torch.empty_like(mine) for _ in range(world_size())]
        dist.all_gather(sizes, mine)
        return cls(tuple(int(size) for size in sizes), rank())

    @property
    def total(self) -> int:
        """Samples in the whole batch."""
        return sum(self.sizes)

    @property
    def first(self) -> int:
        """Position of this process's first sample in the whole batch."""
        return sum(self.sizes[: self.rank])

    @property
    def mine(self) -> slice:
        """Where this process's samples are in the whole batch."""
        return slice(self.first, self.first + self.sizes[self.rank])

    def gather(self, local: Tensor) -> Tensor:
        """The whole batch's rows in process order; gradients return to the process that owns the row."""
        if len(self.sizes) == 1:
            return local
        return _Gather.apply(local, self)

    def sums(self, *shares: Tensor) -> tuple[Tensor, ...]:
        """Of each number its sum over the processes, the same on every process.

        Gradients are multiplied by the number of processes, so that after data-parallel averaging they equal those
        that one process would compute on the whole batch.
        """
        if len(self.sizes) == 1:
            return shares
        return _Sum.apply(torch.stack(shares), len(self.sizes)).unbind()


class _Gather(torch.autograd.Function):
    """All-gather of differently sized shards; backward sums over processes and cuts out the own rows."""

    @staticmethod
    def forward(ctx: Any, local: Tensor, shards: Shards) -> Tensor:
        ctx.shards = shards
        # Collectives want equal shapes: pad to the longest shard, trim afterwards.
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
    def forward(ctx: Any, share: Tensor, processes: int) -> Tensor:
        ctx.processes = processes
        total = share.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad * ctx.processes, None
