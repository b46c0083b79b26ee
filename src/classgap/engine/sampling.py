"""Which order of samples ``--sampler`` names."""

from __future__ import annotations

from classgap.data.dataset import Split
from classgap.data.sampling.orders import ClassAwareOrder, ClassBalancedOrder, Order, RandomOrder
from classgap.engine.config import TrainConfig
from classgap.registry import Entry, Registry


def _shuffled(*, split: Split, seed: int, batch_size: int) -> Order:
    return RandomOrder(len(split), seed)


def _class_balanced(*, split: Split, seed: int, batch_size: int) -> Order:
    return ClassBalancedOrder(split.targets, seed)


def _class_aware(*, split: Split, seed: int, batch_size: int, per_class: int = 4) -> Order:
    if per_class < 1 or batch_size % per_class:
        raise ValueError(f"class-aware: per_class must divide the batch of {batch_size}; got {per_class}.")
    return ClassAwareOrder(split.targets, per_class, batch_size // per_class, seed)


_GIVEN = ("split", "seed", "batch_size")
SAMPLING: Registry[Order] = Registry(
    "sampler",
    [
        Entry("random", "Every sample once an epoch.", _shuffled, given=_GIVEN),
        Entry("class-balanced", "Every class equally often.", _class_balanced, given=_GIVEN),
        Entry("class-aware", "The same number of samples of each class in a batch.", _class_aware, given=_GIVEN),
    ],
)


def build_order(config: TrainConfig, train: Split) -> Order:
    """The order that the settings name."""
    return SAMPLING.build(config.sampler, split=train, seed=config.seed, batch_size=config.batch_size)
