"""Samplers of ``classgap.data`` in the Hugging Face ``Trainer``; other trainers take them as they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.utils.data import Sampler

from classgap.data import ClassAwareBatchSampler, ClassBalancedSampler, ClassQuotaSampler


class SamplerMixin:
    """Mixin for ``transformers.Trainer`` with one more argument, ``train_sampler``.

        class BalancedTrainer(SamplerMixin, Trainer): ...

        sampler = cg.data.ClassBalancedSampler(labels, num_replicas=1, rank=0)
        trainer = BalancedTrainer(model, args, train_dataset=data, train_sampler=sampler)

    ``Trainer`` divides the batches among the processes itself, so the sampler must not. The batches of a
    ``ClassAwareBatchSampler`` are those of one process: its ``batch_size`` must equal ``per_device_train_batch_size``.

    Args:
        train_sampler: a sampler of ``classgap.data`` with ``num_replicas=1, rank=0``.

    Raises:
        ValueError: if the sampler divides its draws among processes, or its batches have another size.
    """

    def __init__(
        self,
        *args: Any,
        train_sampler: ClassBalancedSampler | ClassQuotaSampler | ClassAwareBatchSampler,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        if train_sampler.num_replicas != 1:
            raise ValueError(
                f"train_sampler divides its draws among {train_sampler.num_replicas} processes, and Trainer would "
                "divide them again: create it with num_replicas=1, rank=0."
            )
        if isinstance(train_sampler, ClassAwareBatchSampler):
            size = self._train_batch_size  # type: ignore[attr-defined]
            if train_sampler.batch_size != size:
                raise ValueError(
                    f"per_device_train_batch_size must be the batch size of train_sampler, {train_sampler.batch_size} "
                    f"(per_class * classes_per_batch), got {size}."
                )
        self.train_sampler = train_sampler

    def _get_train_sampler(self, train_dataset: Any = None) -> Sampler[int]:
        """Return the sampler; ``Trainer`` joins its draws to batches and calls ``set_epoch``."""
        sampler = self.train_sampler
        return _Samples(sampler) if isinstance(sampler, ClassAwareBatchSampler) else sampler


class _Samples(Sampler[int]):
    """The samples of a batch sampler, one after another."""

    def __init__(self, batches: ClassAwareBatchSampler) -> None:
        self.batches = batches

    def set_epoch(self, epoch: int) -> None:
        self.batches.set_epoch(epoch)

    def __iter__(self) -> Iterator[int]:
        return (row for batch in self.batches for row in batch)

    def __len__(self) -> int:
        return len(self.batches) * self.batches.batch_size
