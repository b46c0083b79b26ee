"""The inputs of one call of a loss: checked, promoted to at least float32, with ignored samples marked.

Nothing here changes any state, so a rejected batch leaves the loss unchanged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from classgap.distributed import Shards, all_agree, all_gather, rank, world_size
from classgap.functional import ClassGroups, group_by_class
from classgap.losses.shape_checks import device_problems, head_problems, shape_problems
from classgap.losses.value_checks import IGNORED, SUMMARY_SIZE, find_problem, is_suspicious, promote, summarize


class InvalidBatchError(ValueError):
    """Invalid inputs of a loss. In training all processes raise it, even if only one received an invalid batch.

    >>> from classgap.losses import CrossEntropyLoss
    >>> CrossEntropyLoss(num_classes=3)(torch.zeros(2, 3), torch.tensor([0, 3]))
    Traceback (most recent call last):
    classgap.losses.inputs.InvalidBatchError: ...
    """


@dataclass(frozen=True)
class Head:
    """Weight and bias of the classifier layer, at least float32."""

    weight_KD: Tensor
    bias_K: Tensor | None


@dataclass(frozen=True)
class LossInputs:
    """The inputs of one call."""

    logits_BK: Tensor
    labels_B: Tensor  # -1 where ignored; the argmax of soft targets
    soft_BK: Tensor | None  # soft targets, if the loss supports them
    features_BD: Tensor | None
    head: Head | None
    index_B: Tensor | None
    weight_B: Tensor | None
    shards: Shards
    finite: Tensor | None  # 0-d; only in compiled code, where nothing is rejected
    complete: bool = False  # whether no local sample is ignored, if it is known

    def counted(self, terms_B: Tensor) -> Tensor:
        """Set the terms of ignored samples to 0."""
        return terms_B if self.complete else terms_B * (self.labels_B >= 0)

    def count(self) -> Tensor:
        """Number of local samples that are not ignored, in the dtype of the logits."""
        if self.complete:
            return self.logits_BK.new_full((), len(self.labels_B))
        return (self.labels_B >= 0).sum(dtype=self.logits_BK.dtype)

    def group_by_class(self, num_classes: int) -> ClassGroups:
        """Group the samples of all processes by class."""
        alone = len(self.shards.sizes) == 1
        return group_by_class(self.shards.gather(self.labels_B), num_classes, complete=alone and self.complete)

    @property
    def features(self) -> Tensor:
        """The features; for losses that require them."""
        assert self.features_BD is not None
        return self.features_BD

    @property
    def targets(self) -> Tensor:
        """The target for ``torch.nn.functional.cross_entropy``: soft targets if given, else labels."""
        return self.labels_B if self.soft_BK is None else self.soft_BK


def prepare_inputs(
    logits: Tensor,
    targets: Tensor,
    given: dict[str, Any],
    *,
    loss_name: str,
    required_inputs: frozenset[str],
    num_classes: int,
    width: int | None,
    ignore_index: int,
    soft_targets: bool,
    head_type: type[nn.Module],
    device: torch.device | None,
    joint: bool,
    validate: bool,
) -> LossInputs:
    """Check the inputs of one call and convert them to a :class:`LossInputs`.

    Args:
        logits: Of the call.
        targets: Of the call.
        given: The keyword inputs of the call; unused ones are dropped.
        loss_name: For messages.
        required_inputs: Keywords that must be given.
        num_classes: Number of classes K.
        width: Number of features D, if it is fixed.
        ignore_index: The target of ignored samples.
        soft_targets: Whether class probabilities are allowed as targets.
        head_type: Required type of the head.
        device: Device of the loss's own tensors, if it has any.
        joint: Whether all processes work on one batch (training).
        validate: Whether to check values too. It costs one read from the device.

    Raises:
        InvalidBatchError: If an input is invalid; with ``joint`` and ``validate`` on all processes together.
    """
    inputs = {name: value for name, value in given.items() if name in required_inputs or name == "sample_weight"}
    problem = next(
        chain(
            shape_problems(
                logits,
                targets,
                inputs,
                loss_name=loss_name,
                required_inputs=required_inputs,
                num_classes=num_classes,
                width=width,
                soft_targets=soft_targets,
            ),
            head_problems(inputs.get("head"), head_type, inputs.get("features"), num_classes),
            device_problems(logits, targets, inputs, loss_name, device),
        ),
        None,
    )
    compiling = torch.compiler.is_compiling()
    complete = False
    if validate and not compiling:
        complete = _check_values(problem, logits, targets, inputs, num_classes, ignore_index, loss_name, joint=joint)
    elif problem is not None:
        raise InvalidBatchError(problem)

    logits, features = promote(logits), promote(inputs.get("features"))
    finite = None
    if compiling:
        finite = logits.isfinite().all()
        if features is not None:
            finite = finite & torch.linalg.vector_norm(features).isfinite()  # so are its squares
    return LossInputs(
        logits_BK=logits,
        labels_B=targets.long() if complete else _labels(targets, num_classes, ignore_index),
        soft_BK=targets.to(logits.dtype) if targets.is_floating_point() else None,
        features_BD=features,
        head=_head(inputs.get("head")),
        index_B=inputs.get("index"),
        weight_B=promote(inputs.get("sample_weight")),
        shards=Shards.from_batch_size(len(targets), logits.device, joint=joint),
        finite=finite,
        complete=complete,
    )


def _check_values(
    problem: str | None,
    logits: Tensor,
    targets: Tensor,
    inputs: dict[str, Any],
    num_classes: int,
    ignore_index: int,
    loss_name: str,
    *,
    joint: bool,
) -> bool:
    """Raise if any process has a problem, else return whether no local sample is ignored."""
    summary = None if problem is not None else summarize(logits, targets, inputs, ignore_index)
    summaries = _read_summaries(summary, joint=joint)
    if any(is_suspicious(each, num_classes) for each in summaries):
        if problem is None:
            problem = find_problem(logits, targets, inputs, num_classes, ignore_index)
        if not (all_agree(problem is None) if joint else problem is None):
            other = f"{loss_name}: another process received invalid inputs; see its error message."
            raise InvalidBatchError(problem or other)
    lowest_label = summaries[rank() if joint else 0][0]
    return lowest_label > IGNORED and len(targets) > 0 and not targets.is_floating_point()


def _read_summaries(summary: Tensor | None, *, joint: bool) -> list[list[float]]:
    """Read the summaries of all processes at once; None becomes NaN."""
    if summary is None:
        summary = torch.full((SUMMARY_SIZE,), math.nan)
    if not joint or world_size() == 1:
        return [summary.tolist()]
    return all_gather(F.pad(summary, (0, SUMMARY_SIZE - len(summary)))).tolist()


def _labels(targets: Tensor, num_classes: int, ignore_index: int) -> Tensor:
    if targets.is_floating_point():
        return targets.argmax(dim=1)
    labels = targets.long()
    if torch.compiler.is_compiling():  # nothing was rejected: other negative labels are invalid, not ignored
        return torch.where(labels == ignore_index, -1, torch.where(labels < 0, num_classes, labels))
    return torch.where(labels == ignore_index, -1, labels)


def _head(module: nn.Module | None) -> Head | None:
    if module is None:
        return None
    return Head(promote(module.weight), promote(getattr(module, "bias", None)))
