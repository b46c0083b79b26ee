"""Sample order of a stage (``--sampler``) and micro-batches."""

from __future__ import annotations

from classgap.data.batch import Batch
from classgap.data.dataset import Split
from classgap.data.sampling.batching import shard_slice
from classgap.data.sampling.orders import ClassAwareOrder, ClassBalancedOrder, Order, RandomOrder
from classgap.distributed import world_size
from classgap.engine.config import TrainConfig
from classgap.registry import Entry, Registry


def _random(*, split: Split, seed: int, batch_size: int) -> Order:
    return RandomOrder(len(split), seed)


def _class_balanced(*, split: Split, seed: int, batch_size: int) -> Order:
    return ClassBalancedOrder(split.targets, seed)


def _class_aware(*, split: Split, seed: int, batch_size: int, per_class: int = 4) -> Order:
    if per_class < 1 or batch_size % per_class:
        raise ValueError(f"class-aware: per_class must divide the batch size of {batch_size}; got {per_class}.")
    return ClassAwareOrder(split.targets, per_class, batch_size // per_class, seed)


_GIVEN = ("split", "seed", "batch_size")
SAMPLERS: Registry[Order] = Registry(
    "sampler",
    [
        Entry("random", "Each sample once per epoch.", _random, given=_GIVEN),
        Entry("class-balanced", "Each class equally often.", _class_balanced, given=_GIVEN),
        Entry("class-aware", "The same number of samples per class in each batch.", _class_aware, given=_GIVEN),
    ],
)


def make_order(config: TrainConfig, train: Split) -> Order:
    """Build the sample order that the configuration names."""
    return SAMPLERS.build(config.sampler, split=train, seed=config.seed, batch_size=config.batch_size)


def split_micro_batches(batch: Batch, count: int) -> list[tuple[Batch, float]]:
    """Split this process's batch into micro-batches, each with its fraction of the global batch.

    All processes create the same number of non-empty micro-batches, so that losses can communicate in each of them.
    """
    if count == 1:
        return [(batch, 1.0)]
    world = world_size()
    sizes = [_length(shard_slice(batch.total, process, world)) for process in range(world)]
    count = max(1, min(count, *sizes))
    fractions = [sum(_length(shard_slice(size, i, count)) for size in sizes) / batch.total for i in range(count)]
    return [(_rows(batch, shard_slice(len(batch), i, count)), fraction) for i, fraction in enumerate(fractions)]


def _length(rows: slice) -> int:
    return int(rows.stop - rows.start)


def _rows(batch: Batch, rows: slice) -> Batch:
    return batch.map(lambda tensor: tensor[rows])
