"""Split an epoch into batches, and a batch into shards for the processes."""

from __future__ import annotations

from torch import Tensor


def count_batches(num_samples: int, batch_size: int, world_size: int = 1) -> int:
    """Number of batches in an epoch, see :func:`split_batches`.

    >>> count_batches(10, 4), count_batches(9, 4)
    (3, 2)
    """
    if batch_size < world_size or world_size < 1:
        raise ValueError(f"batch_size must be at least the number of processes, {world_size}; got {batch_size}.")
    full, rest = divmod(num_samples, batch_size)
    # Independent of world_size, so that the number of processes does not change the result.
    return full + (rest >= max(2, batch_size / 4) or (full == 0 and rest > 0))


def split_batches(rows: Tensor, batch_size: int, world_size: int = 1) -> list[Tensor]:
    """Split the rows of an epoch into global batches.

    The last batch is dropped if it is smaller than a quarter of ``batch_size``: so few samples per process would
    distort the statistics of batch norm. An epoch always has at least one batch.

    Args:
        rows: Rows of the epoch.
        batch_size: Global batch size.
        world_size: Number of processes.

    >>> import torch
    >>> split_batches(torch.arange(9), 4)
    [tensor([0, 1, 2, 3]), tensor([4, 5, 6, 7])]
    """
    return list(rows.split(batch_size)[: count_batches(len(rows), batch_size, world_size)])


def shard_slice(num_samples: int, index: int, num_shards: int) -> slice:
    """Return the slice of one shard: contiguous, in order, with sizes that differ by at most one.

    >>> shard_slice(5, 0, 2), shard_slice(5, 1, 2)
    (slice(0, 2, None), slice(2, 5, None))
    """
    return slice(num_samples * index // num_shards, num_samples * (index + 1) // num_shards)
