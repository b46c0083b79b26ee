"""A split in batches of tensors: in order, augmented, normalised, mixed; for one process of several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from classgap import distributed
from classgap.data.batch import Batch as Batch  # part of what this module offers
from classgap.data.batch import Delivery, gathered
from classgap.data.dataset import Split
from classgap.data.sampling.keyed_random import Keys, occurrences, sample_keys
from classgap.data.sampling.order import Order, batches_of, count_batches, share_of
from classgap.data.transforms.augment import Augment, build_augment
from classgap.data.transforms.crops import centre
from classgap.data.transforms.mix import CutMix, Mix, build_mix, soft_targets
from classgap.data.transforms.normalize import Normalize


@dataclass(frozen=True)
class _Step:
    """One batch before anything is loaded: the places in the split and the random keys of all processes' samples."""

    epoch: int
    number: int
    rows: Tensor
    samples: Tensor


class Batches:
    """The batches of a training split, epoch by epoch.

    What a batch holds is a function of (seed, epoch, sample): starting in the middle of an epoch, working ahead and the
    number of processes do not change it. W processes have the batches of one process, each a contiguous part.

    Args:
        split: images as uint8 (N, C, H, W), or anything else as float32 (N, …).
        order: which samples an epoch uses, of all processes together.
        batch_size: of all processes together.
        augment: by name, such as "rand-augment:n=2", or a function of images and keys; for images only.
        mix: "mixup", "cutmix", or ``None``.
        mean: of each channel; images as shares of 255.
        std: of each channel.
        seed: of augmentation and mixing.
        num_classes: K of the mixed targets.
        views: 2 gives ``other_view`` too.
        rank: number of this process; by default that of ``torch.distributed``.
        world: number of processes.
        device: where the batches are used. They are made on the CPU.
        channels_last: the memory format of images.

    >>> from classgap.data.sampling.order import Shuffled
    >>> split = Split.from_arrays(torch.zeros(10, 3, 32, 32, dtype=torch.uint8), torch.arange(10))
    >>> batches = Batches(split, Shuffled(10), batch_size=4, augment="crop-flip", num_classes=10)
    >>> len(batches), [len(batch) for batch in batches.epoch(0)]
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
        world: int | None = None,
        device: str | torch.device = "cpu",
        channels_last: bool = False,
    ) -> None:
        if views not in (1, 2):
            raise ValueError(f"views must be 1 or 2; got {views}.")
        self.rank, self.world = _place(rank, world)
        self.steps = count_batches(len(order), batch_size, self.world)
        if len(split) == 0 or len(order) < self.world:
            raise ValueError(
                f"split and order must have a sample for each of {self.world} process(es); "
                f"got {len(split)} and {len(order)}."
            )
        if int(split.targets.max()) >= num_classes:
            raise ValueError(
                f"num_classes must be above the largest target {int(split.targets.max())}; got {num_classes}."
            )
        self.split, self.order, self.batch_size = split, order, batch_size
        self.augment = build_augment(augment) if isinstance(augment, str) else augment
        self.mix = build_mix(mix) if isinstance(mix, str) else mix
        self.seed, self.num_classes, self.views = seed, num_classes, views
        self.delivery = Delivery.from_inputs(split.inputs, device, channels_last)
        first = gathered(split.inputs, torch.zeros(1, dtype=torch.long))
        if self.augment is not None and (first.dtype != torch.uint8 or first.ndim != 4):
            raise ValueError(
                f"augment is for images, uint8 of (N, C, H, W); these inputs are {first.dtype} of "
                f"{tuple(first.shape[1:])} each. Use augment='none'."
            )
        if isinstance(self.mix, CutMix) and first.ndim != 4:
            raise ValueError(f"cutmix is for images; these inputs are {tuple(first.shape[1:])} each. Use mix='mixup'.")
        self.normalize = Normalize.from_stats(first, mean, std)

    def __len__(self) -> int:
        return self.steps

    def samples(self, updates: int) -> int:
        """How many samples the first so many batches have, over epochs and processes.

        >>> from classgap.data.sampling.order import Shuffled
        >>> split = Split.from_arrays(torch.zeros(10, 2), torch.arange(10))
        >>> batches = Batches(split, Shuffled(10), batch_size=4, num_classes=10)
        >>> [batches.samples(updates) for updates in (1, 2, 3, 4)]
        [4, 8, 10, 14]
        """
        epochs, rest = divmod(updates, self.steps)
        whole, begun = (min(steps * self.batch_size, len(self.order)) for steps in (self.steps, rest))
        return epochs * whole + begun

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches of one epoch.

        Args:
            epoch: from 0.
            start: the step to begin with, for an epoch that was interrupted.
        """
        if not 0 <= start <= self.steps:
            raise ValueError(f"start must be from 0 to the {self.steps} steps of an epoch; got {start}.")
        rows = self.order(epoch)
        samples = sample_keys(self.split.index[rows], occurrences(rows))
        parts = [batches_of(each, self.batch_size, self.world) for each in (rows, samples)]
        steps = [_Step(epoch, number, *both) for number, both in enumerate(zip(*parts, strict=True))]
        return self.delivery(self._made, steps[start:])

    def _made(self, step: _Step) -> Batch:
        mine = torch.arange(len(step.rows))[share_of(len(step.rows), self.rank, self.world)]
        rows = step.rows[mine]
        labels = self.split.targets[rows]
        if self.mix is None:
            views, targets = self._views(step, mine), labels
        else:
            views, targets = self._mixed(self.mix, step, mine, labels)
        other = views[1] if self.views == 2 else None
        return Batch(views[0], targets, labels, rows, len(step.rows), other)

    def _views(self, step: _Step, places: Tensor) -> list[Tensor]:
        """Augmented, normalised inputs of some places of the whole batch, once a view."""
        inputs = gathered(self.split.inputs, step.rows[places])
        if self.augment is None:
            return [self.normalize(inputs)] * self.views
        samples = step.samples[places]
        keys = [Keys(self.seed, step.epoch, samples, view) for view in range(self.views)]
        return [self.normalize(self.augment(inputs, each)) for each in keys]

    def _mixed(self, mix: Mix, step: _Step, mine: Tensor, labels: Tensor) -> tuple[list[Tensor], Tensor]:
        recipe = mix.recipe(self.seed, step.epoch, step.number, len(step.rows))
        partner = recipe.partner[mine]
        # Each place is loaded once, though it may be here both as a sample and as a partner.
        needed, where = torch.cat([mine, partner]).unique(return_inverse=True)
        own, other = where.split(len(mine))
        mixed = [
            mix(view.index_select(0, own), view.index_select(0, other), recipe) for view in self._views(step, needed)
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
    world: int | None = None,
    device: str | torch.device = "cpu",
    channels_last: bool = False,
) -> Iterator[Batch]:
    """Every sample once and unchanged, in order: each process takes a contiguous share.

    Args:
        split: to look at.
        batch_size: of one process.
        mean: of each channel; images as shares of 255.
        std: of each channel.
        size: cut this square from the middle of larger images.
        rank: number of this process; by default that of ``torch.distributed``.
        world: number of processes.
        device: where the batches are used.
        channels_last: the memory format of images.

    >>> split = Split.from_arrays(torch.zeros(5, 3), torch.arange(5))
    >>> [batch.labels.tolist() for batch in evaluation_batches(split, batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1; got {batch_size}.")
    rank, world = _place(rank, world)
    mine = torch.arange(len(split))[share_of(len(split), rank, world)]

    def made(rows: Tensor) -> Batch:
        inputs = gathered(split.inputs, rows)
        inputs = inputs if size is None else centre(inputs, size)
        labels = split.targets[rows]
        return Batch(Normalize.from_stats(inputs, mean, std)(inputs), labels, labels, rows, len(rows))

    delivery = Delivery.from_inputs(split.inputs, device, channels_last)
    return delivery(made, mine.split(batch_size) if len(mine) else ())


def _place(rank: int | None, world: int | None) -> tuple[int, int]:
    rank = distributed.rank() if rank is None else rank
    world = distributed.world_size() if world is None else world
    if not 0 <= rank < world:
        raise ValueError(f"rank must be from 0 to world - 1 = {world - 1}; got {rank}.")
    return rank, world
