"""Evaluation of a split: each sample once, with any number of processes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from classgap._eval_mode import evaluating
from classgap.audit.metrics.groups import thirds
from classgap.data.dataset import Split
from classgap.data.loader import evaluation_batches
from classgap.data.sampling.batching import shard_slice
from classgap.distributed import broadcast_buffers, gather_rows, rank, world_size

if TYPE_CHECKING:
    from classgap.engine.run import Run


@dataclass(frozen=True)
class BatchOutputs:
    """Outputs of the model for one batch, on the model's device.

    Attributes:
        logits_BK: Logits, in at least float32.
        features_BD: Inputs of the head.
        targets_B: True classes.
    """

    logits_BK: Tensor
    features_BD: Tensor
    targets_B: Tensor


@dataclass(frozen=True)
class Predictions:
    """Predicted and true class of each sample of a split.

    Attributes:
        classes_N: Predicted classes.
        targets_N: True classes.
        num_classes: K.
    """

    classes_N: Tensor
    targets_N: Tensor
    num_classes: int

    def accuracies(self) -> dict[str, float]:
        """Return the overall, balanced and worst-class accuracy and the mean accuracy of each third of the classes.

        >>> Predictions(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 1]), 3).accuracies()["balanced"]
        0.8333333333333334
        """
        correct_N = (self.classes_N == self.targets_N).double()
        count_K = torch.bincount(self.targets_N, minlength=self.num_classes)
        by_class = (torch.bincount(self.targets_N, weights=correct_N, minlength=self.num_classes) / count_K).numpy()
        seen = ~np.isnan(by_class)  # a class without samples has no accuracy
        groups = {name: by_class[members].mean() for name, members in thirds(by_class, seen).items() if len(members)}
        known = by_class[seen]
        values = {"accuracy": correct_N.mean(), "balanced": known.mean(), **groups, "worst": known.min()}
        return {name: float(value) for name, value in values.items()}


@dataclass(frozen=True)
class Scores:
    """Logits and features of all samples of a split, in its order, on the CPU.

    Attributes:
        logits_NK: Logits, in at least float32.
        features_ND: Inputs of the head; width 0 if not requested.
        targets_N: True classes.

    >>> scores = Scores(torch.tensor([[2.0, 1.0], [0.0, 3.0]]), torch.empty(2, 0), torch.tensor([0, 0]))
    >>> scores.accuracies()["accuracy"]
    0.5
    """

    logits_NK: Tensor
    features_ND: Tensor
    targets_N: Tensor

    def predictions(self) -> Predictions:
        """Return the predicted classes."""
        return Predictions(self.logits_NK.argmax(dim=1), self.targets_N, self.logits_NK.shape[1])

    def accuracies(self) -> dict[str, float]:
        """Return the accuracies of the predicted classes; see :meth:`Predictions.accuracies`."""
        return self.predictions().accuracies()


@torch.no_grad()
def iterate_outputs(run: Run, split: Split) -> Iterator[BatchOutputs]:
    """Yield the outputs for this process's part of a split, in order; all processes must exhaust the iterator.

    A batch is as large as a training step's micro-batch, so whatever fits in training fits here. The logits of a large
    training set would not fit into memory: reduce each batch before reading the next.
    """
    assert run.config.batch_size is not None
    broadcast_buffers(run.model, run.method)  # evaluate with the buffers of process 0, which are the ones saved
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
            yield BatchOutputs(logits_BK, features_BD, batch.labels)


def compute_scores(run: Run, split: Split, *, features: bool) -> Scores:
    """Compute the logits, and optionally the features, of all samples on every process."""
    count, width = _local_size(split), run.tap.head.get_parameter("weight").shape[1] if features else 0
    logits_NK, features_ND, done = torch.empty(count, run.num_classes), torch.empty(count, width), 0
    for outputs in iterate_outputs(run, split):
        rows = slice(done, done := done + len(outputs.targets_B))
        logits_NK[rows] = outputs.logits_BK
        features_ND[rows] = outputs.features_BD[:, :width]
    return Scores(gather_rows(logits_NK), gather_rows(features_ND), split.targets)


def compute_predictions(run: Run, split: Split) -> Predictions:
    """Compute the predicted class of each sample on every process."""
    # One allocation: many small tensors between large temporary ones would fragment memory.
    classes_N, done = torch.empty(_local_size(split), dtype=torch.long), 0
    for outputs in iterate_outputs(run, split):
        classes_N[done : (done := done + len(outputs.targets_B))] = outputs.logits_BK.argmax(dim=1)
    return Predictions(gather_rows(classes_N), split.targets, run.num_classes)


def _local_size(split: Split) -> int:
    """Return the number of samples of this process."""
    part = shard_slice(len(split), rank(), world_size())
    return int(part.stop - part.start)
