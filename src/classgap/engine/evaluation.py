"""One pass over a split in evaluation mode: every sample once, whatever the number of processes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from classgap._eval_mode import evaluating
from classgap.data.batches import evaluation_batches
from classgap.data.dataset import Split
from classgap.data.sampling.order import share_of
from classgap.distributed import broadcast_buffers, gather_rows, rank, world_size
from classgap.engine.scores import Predicted, Scores

if TYPE_CHECKING:
    from classgap.engine.run import Run


@dataclass(frozen=True)
class Seen:
    """What a model says about a few samples, on its device.

    Attributes:
        logits_BK: at least float32.
        features_BD: what the head was applied to.
        targets_B: true classes.
    """

    logits_BK: Tensor
    features_BD: Tensor
    targets_B: Tensor


@torch.no_grad()
def looked_at(run: Run, split: Split) -> Iterator[Seen]:
    """This process's share of a split, in order and a few samples at a time; go through all of it, on all processes.

    There are as many samples at a time as a training step sends through the network: what fits there fits here. All
    logits of a large training set would not fit into memory: take from each what is needed.
    """
    assert run.config.batch_size is not None
    broadcast_buffers(run.model, run.method)  # what process 0 saves is what all of them look through
    batches = evaluation_batches(
        split,
        batch_size=max(1, run.config.batch_size // (world_size() * run.config.micro_batches)),
        mean=run.mean,
        std=run.std,
        size=run.crop,
        device=run.device,
        channels_last=run.config.channels_last,
    )
    with evaluating(run.model, run.method):
        for batch in batches:
            logits_BK, features_BD = run.method.predict(run, batch.inputs)
            logits_BK = logits_BK.to(torch.promote_types(logits_BK.dtype, torch.float32))
            yield Seen(logits_BK, features_BD, batch.labels)


def scores_of(run: Run, split: Split, *, features: bool) -> Scores:
    """Logits and, if asked for, features of all samples, in the split's order, on every process."""
    mine, width = _share(split), run.tap.head.get_parameter("weight").shape[1] if features else 0
    logits_NK, features_ND, done = torch.empty(mine, run.num_classes), torch.empty(mine, width), 0
    for seen in looked_at(run, split):
        rows = slice(done, done := done + len(seen.targets_B))
        logits_NK[rows] = seen.logits_BK
        features_ND[rows] = seen.features_BD[:, :width]
    return Scores(gather_rows(logits_NK), gather_rows(features_ND), split.targets)


def predictions_of(run: Run, split: Split) -> Predicted:
    """The class that the model gives each sample, in the split's order, on every process."""
    # One piece of memory: many small ones between large ones that come and go would keep those from being used again.
    classes_N, done = torch.empty(_share(split), dtype=torch.long), 0
    for seen in looked_at(run, split):
        classes_N[done : (done := done + len(seen.targets_B))] = seen.logits_BK.argmax(dim=1)
    return Predicted(gather_rows(classes_N), split.targets, run.num_classes)


def _share(split: Split) -> int:
    """Samples of this process."""
    share = share_of(len(split), rank(), world_size())
    return int(share.stop - share.start)
