"""Load a split in batches: ordered, augmented, normalized, mixed and sharded over processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from classgap import distributed
from classgap.data.batch import Batch
from classgap.data.dataset import Inputs, Split, Subset
from classgap.data.prefetch import DevicePrefetcher
from classgap.data.sampling.batching import count_batches, shard_slice, split_batches
from classgap.data.sampling.keyed_random import Keys, cumcount, sample_keys
from classgap.data.sampling.orders import Order
from classgap.data.sources.original_images import OriginalImages
from classgap.data.transforms.augment import Augment, augment_originals, build_augment, crops_originals
from classgap.data.transforms.crops import center_crop
from classgap.data.transforms.mix import CutMix, Mix, build_mix, soft_targets
from classgap.data.transforms.normalize import Normalize


@dataclass(frozen=True)
class _Step:
    """A global batch before its samples are loaded: their rows in the split and their random keys."""

    epoch: int
    number: int
    rows: Tensor
    samples: Tensor


class BatchLoader:
    """Batches of a training split, epoch by epoch.

    A batch is a function of (seed, epoch, sample): resuming within an epoch, prefetching and the number of processes
    do not change it. Each process loads a contiguous part of the global batch.

    Args:
        split: Training split; images as uint8 (N, C, H, W), others as float32 (N, …).
        order: Rows of each epoch, over all processes.
        batch_size: Global batch size.
        num_classes: Number of classes, K.
        augment: Name, for example "rand-augment:n=2", or a function of images and keys. Images only.
        mix: "mixup", "cutmix" or ``None``.
        mean: Mean of each channel, for images on the scale [0, 1].
        std: Standard deviation of each channel.
        seed: Random seed of augmentation and mixing.
        views: Augmented views per sample, 1 or 2; the second is ``Batch.other_view``.
        rank: Rank of this process. Defaults to the rank in ``torch.distributed``, or 0.
        world_size: Number of processes. Defaults to the world size of ``torch.distributed``, or 1.
        device: Device of the batches. They are built on the CPU.
        channels_last: Use the channels-last memory format for images.

    >>> from classgap.data import RandomOrder
    >>> split = Split.from_arrays(torch.zeros(10, 3, 32, 32, dtype=torch.uint8), torch.arange(10))
    >>> loader = BatchLoader(split, RandomOrder(10), batch_size=4, augment="crop-flip", num_classes=10)
    >>> len(loader), [len(batch) for batch in loader.epoch(0)]
    (3, [4, 4, 2])
    """

    def __init__(
        self,
        split: Split,
        order: Order,
        *,
        batch_size: int,
        num_classes: int,
        augment: str | Augment | None = None,
        mix: str | Mix | None = None,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        seed: int = 0,
        views: int = 1,
        rank: int | None = None,
        world_size: int | None = None,
        device: str | torch.device = "cpu",
        channels_last: bool = False,
    ) -> None:
        if views not in (1, 2):
            raise ValueError(f"views must be 1 or 2, got {views}.")
        self.rank, self.world_size = _resolve_rank(rank, world_size)
        self.steps = count_batches(len(order), batch_size, self.world_size)
        if len(split) == 0 or len(order) < self.world_size:
            raise ValueError(
                f"split and order must have at least one sample per process ({self.world_size}), "
                f"got {len(split)} and {len(order)}."
            )
        if int(split.targets.max()) >= num_classes:
            raise ValueError(
                f"num_classes must exceed the largest target, {int(split.targets.max())}, got {num_classes}."
            )
        self.split, self.order, self.batch_size = split, order, batch_size
        self.augment = build_augment(augment) if isinstance(augment, str) else augment
        self.mix = build_mix(mix) if isinstance(mix, str) else mix
        self.seed, self.num_classes, self.views = seed, num_classes, views
        self.prefetcher = DevicePrefetcher.from_inputs(split.inputs, device, channels_last)
        first = _take_rows(split.inputs, torch.zeros(1, dtype=torch.long))
        if self.augment is not None and (first.dtype != torch.uint8 or first.ndim != 4):
            raise ValueError(
                f"augment needs images, uint8 (N, C, H, W), got {first.dtype} inputs of shape "
                f"{tuple(first.shape[1:])}. Use augment='none'."
            )
        source, _ = _find_source(split.inputs, torch.zeros(1, dtype=torch.long))
        if isinstance(source, OriginalImages) and not crops_originals(self.augment):
            raise ValueError(
                f"crops=original needs random resized crops, but augment is {augment}: use rrc, or auto-augment or "
                "rand-augment with crop=rrc, or remove crops=original."
            )
        if isinstance(self.mix, CutMix) and first.ndim != 4:
            raise ValueError(f"cutmix needs images, got inputs of shape {tuple(first.shape[1:])}. Use mix='mixup'.")
        self.normalize = Normalize.from_stats(first, mean, std)

    def __len__(self) -> int:
        return self.steps

    def count_samples(self, updates: int) -> int:
        """Count the samples in the first ``updates`` batches, over epochs and processes.

        >>> from classgap.data import RandomOrder
        >>> split = Split.from_arrays(torch.zeros(10, 2), torch.arange(10))
        >>> loader = BatchLoader(split, RandomOrder(10), batch_size=4, num_classes=10)
        >>> [loader.count_samples(updates) for updates in (1, 2, 3, 4)]
        [4, 8, 10, 14]
        """
        epochs, rest = divmod(updates, self.steps)
        per_epoch, partial = (min(steps * self.batch_size, len(self.order)) for steps in (self.steps, rest))
        return epochs * per_epoch + partial

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """Iterate over the batches of an epoch.

        Args:
            epoch: Epoch, from 0.
            start: First step, to resume within an epoch.
        """
        if not 0 <= start <= self.steps:
            raise ValueError(f"start must be in [0, {self.steps}], the steps of an epoch, got {start}.")
        rows = self.order(epoch)
        samples = sample_keys(self.split.index[rows], cumcount(rows))
        parts = [split_batches(each, self.batch_size, self.world_size) for each in (rows, samples)]
        steps = [_Step(epoch, number, *both) for number, both in enumerate(zip(*parts, strict=True))]
        return self.prefetcher.iterate(self._make_batch, steps[start:])

    def _make_batch(self, step: _Step) -> Batch:
        local = torch.arange(len(step.rows))[shard_slice(len(step.rows), self.rank, self.world_size)]
        rows = step.rows[local]
        labels = self.split.targets[rows]
        if self.mix is None:
            views, targets = self._make_views(step, local), labels
        else:
            views, targets = self._mix_views(self.mix, step, local, labels)
        other = views[1] if self.views == 2 else None
        return Batch(views[0], targets, labels, rows, len(step.rows), other)

    def _make_views(self, step: _Step, positions: Tensor) -> list[Tensor]:
        """Load, augment and normalize some positions of the global batch, once per view."""
        samples = step.samples[positions]
        keys = [Keys(self.seed, step.epoch, samples, view) for view in range(self.views)]
        source, rows = _find_source(self.split.inputs, step.rows[positions])
        if isinstance(source, OriginalImages):
            return [self.normalize(augment_originals(self.augment, source, rows, each)) for each in keys]
        inputs = _take_rows(source, rows)
        if self.augment is None:
            return [self.normalize(inputs)] * self.views
        return [self.normalize(self.augment(inputs, each)) for each in keys]

    def _mix_views(self, mix: Mix, step: _Step, local: Tensor, labels: Tensor) -> tuple[list[Tensor], Tensor]:
        params = mix.make_params(self.seed, step.epoch, step.number, len(step.rows))
        partner = params.partner[local]
        # Load each position once, even if it is both a sample and a partner.
        needed, where = torch.cat([local, partner]).unique(return_inverse=True)
        own, other = where.split(len(local))
        mixed = [
            mix(view.index_select(0, own), view.index_select(0, other), params)
            for view in self._make_views(step, needed)
        ]
        partner_labels = self.split.targets[step.rows[partner]]
        targets = soft_targets(labels, partner_labels, mixed[0][1], self.num_classes)
        return [inputs for inputs, _ in mixed], targets


def evaluation_batches(
    split: Split,
    *,
    batch_size: int,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    size: int | None = None,
    rank: int | None = None,
    world_size: int | None = None,
    device: str | torch.device = "cpu",
    channels_last: bool = False,
) -> Iterator[Batch]:
    """Iterate over every sample once, in order and without augmentation. Each process takes a contiguous part.

    Args:
        split: Split to evaluate.
        batch_size: Batch size per process.
        mean: Mean of each channel, for images on the scale [0, 1].
        std: Standard deviation of each channel.
        size: Center-crop images to squares of this size.
        rank: Rank of this process. Defaults to the rank in ``torch.distributed``, or 0.
        world_size: Number of processes. Defaults to the world size of ``torch.distributed``, or 1.
        device: Device of the batches.
        channels_last: Use the channels-last memory format for images.

    >>> split = Split.from_arrays(torch.zeros(5, 3), torch.arange(5))
    >>> [batch.labels.tolist() for batch in evaluation_batches(split, batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}.")
    rank, world_size = _resolve_rank(rank, world_size)
    local = torch.arange(len(split))[shard_slice(len(split), rank, world_size)]

    def make_batch(rows: Tensor) -> Batch:
        inputs = _take_rows(split.inputs, rows)
        inputs = inputs if size is None else center_crop(inputs, size)
        labels = split.targets[rows]
        return Batch(Normalize.from_stats(inputs, mean, std)(inputs), labels, labels, rows, len(rows))

    prefetcher = DevicePrefetcher.from_inputs(split.inputs, device, channels_last)
    return prefetcher.iterate(make_batch, local.split(batch_size) if len(local) else ())


def _take_rows(inputs: Inputs, rows: Tensor) -> Tensor:
    # index_select copies complete samples, which is faster than advanced indexing.
    inputs, rows = _find_source(inputs, rows)
    return inputs.index_select(0, rows) if isinstance(inputs, Tensor) else inputs[rows]


def _find_source(inputs: Inputs, rows: Tensor) -> tuple[Inputs, Tensor]:
    """Return the inputs that subsets are taken from, and the rows in them."""
    while isinstance(inputs, Subset):
        rows = inputs.rows.index_select(0, rows)
        inputs = inputs.inputs
    return inputs, rows


def _resolve_rank(rank: int | None, world_size: int | None) -> tuple[int, int]:
    rank = distributed.rank() if rank is None else rank
    world_size = distributed.world_size() if world_size is None else world_size
    if not 0 <= rank < world_size:
        raise ValueError(f"rank must be in [0, {world_size - 1}], got {rank}.")
    return rank, world_size
