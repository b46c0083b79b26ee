"""Evaluate the objective on a micro-batch: its value, its metrics, and a check that it is finite."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from torch import Tensor

from classgap.data.batch import Batch
from classgap.distributed import all_gather_object
from classgap.engine.errors import NonFiniteLossError
from classgap.engine.logging.meter import to_floats
from classgap.losses.inputs import InvalidBatchError

if TYPE_CHECKING:
    from classgap.engine.run import Run


def evaluate_objective(run: Run, objective: Callable[[Run, Batch], Tensor], batch: Batch, weight: float) -> Tensor:
    """Return the objective of a micro-batch and add its terms to the metrics.

    Args:
        run: The run, whose ``logits`` are those of the forward pass in ``objective``.
        objective: Loss of a micro-batch.
        batch: The micro-batch.
        weight: Weight of the values in the epoch's metrics; 0 leaves them out.

    Raises:
        NonFiniteLossError: On all processes, if a value is not finite on one of them.
    """
    try:
        value = objective(run, batch)
    except InvalidBatchError:  # losses raise it on all processes, for instance if features have no finite square
        seen = {} if run.logits is None else {"norm of the features": run.tap.features.detach().norm()}
        _raise_if_not_finite(run, seen, batch)
        raise
    values = {"loss": value.detach(), **run.method.loss.terms}
    numbers = to_floats(values | _count_correct(run, batch))
    if not math.isfinite(numbers["loss"]):
        _raise_if_not_finite(run, values, batch)
    if weight:
        run.meter.add({name: numbers[name] for name in values}, weight)
        if "correct" in numbers:
            size = len(batch.labels)
            run.meter.add({"train_accuracy": numbers["correct"] / max(1, size)}, size, local=True)
    return value


def _count_correct(run: Run, batch: Batch) -> dict[str, Tensor]:
    """Count correct predictions; several views or mixed samples have no accuracy."""
    logits_BK, labels_B = run.logits, batch.labels
    if logits_BK is None or len(logits_BK) != len(labels_B) or batch.targets.dim() != 1:
        return {}
    return {"correct": (logits_BK.argmax(dim=1) == labels_B).sum()}


def _raise_if_not_finite(run: Run, values: dict[str, Tensor], batch: Batch) -> None:
    """Raise the same error on all processes if a value is not finite on one of them; all of them must call it."""
    logits = {} if run.logits is None else {"logits": run.logits}
    gathered = all_gather_object([_describe_non_finite(logits | values), run.train.index[batch.rows.cpu()].tolist()])
    terms = list(dict.fromkeys(name for names, _ in gathered for name in names))
    if terms:
        raise NonFiniteLossError(run.describe_position(), terms, [each for _, samples in gathered for each in samples])


def _describe_non_finite(values: dict[str, Tensor]) -> list[str]:
    """Name the values that contain NaN or infinity.

    >>> import torch
    >>> _describe_non_finite({"loss": torch.tensor(1.0), "logits": torch.tensor([0.0, float("nan")])})
    ['logits (nan)']
    """
    return [
        f"{name} ({'nan' if bool(value.isnan().any()) else 'infinite'})"
        for name, value in values.items()
        if not bool(value.isfinite().all())
    ]
