"""A batch in parts that go through the network one after the other."""

from __future__ import annotations

from classgap.data.batch import Batch
from classgap.data.sampling.batching import shard_slice
from classgap.distributed import world_size


def micro_batches(batch: Batch, parts: int) -> list[tuple[Batch, float]]:
    """The parts of this process's batch, each with the share of all processes' samples that the part holds everywhere.

    Every process makes the same number of parts, none of them empty, so that a loss that communicates finds the others.
    """
    if parts == 1:
        return [(batch, 1.0)]
    world = world_size()
    sizes = [_length(shard_slice(batch.total, process, world)) for process in range(world)]
    parts = max(1, min(parts, *sizes))
    shares = [sum(_length(shard_slice(size, part, parts)) for size in sizes) / batch.total for part in range(parts)]
    return [(_part(batch, shard_slice(len(batch), i, parts)), share) for i, share in enumerate(shares)]


def _length(part: slice) -> int:
    return int(part.stop - part.start)


def _part(batch: Batch, rows: slice) -> Batch:
    return batch.map(lambda tensor: tensor[rows])
