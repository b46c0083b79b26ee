"""The base class of training methods: hooks that the engine calls during a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from classgap.losses.base import ClassLoss

if TYPE_CHECKING:
    from classgap.data.batch import Batch
    from classgap.methods.protocol import TrainingRun


@dataclass(frozen=True)
class Stage:
    """A part of training with its own optimizer and schedule.

    Attributes:
        name: Name in metrics and progress output.
        fraction: Length as a fraction of the run's epochs or steps.

    >>> [stage.length(100) for stage in (Stage("features"), Stage("classifier", fraction=0.1))]
    [100, 10]
    """

    name: str
    fraction: float = 1.0

    def length(self, total: int) -> int:
        """Return the epochs (or steps) of this stage for a run of ``total`` epochs (or steps).

        >>> Stage("warmup", fraction=0.25).length(40)
        10
        """
        return max(1, round(self.fraction * total))


class Method(nn.Module):
    """A training method. The base class minimizes a loss in the standard loop.

    The engine calls ``prepare`` once. For each stage it calls ``stage_start``, then ``epoch_start`` and one ``step``
    per batch in each epoch, then ``stage_end``. It calls ``finish`` last.

    A method is a module. Keep its state in buffers and additional networks in child modules: checkpoints save both. To
    resume, the engine calls ``prepare``, restores the method, calls ``stage_start`` of the current stage again and
    restores everything else. ``stage_start`` must therefore depend on the state of the method only. Compute results of
    a pass over the data in ``stage_end`` or ``epoch_start``, which do not run twice.

    Args:
        loss: The loss to minimize.

    >>> from classgap.losses import CrossEntropyLoss
    >>> class WarmedUp(Method):
    ...     def stages(self):
    ...         return (Stage("warmup", fraction=0.1), Stage("train"))
    >>> [stage.length(40) for stage in WarmedUp(CrossEntropyLoss(num_classes=10)).stages()]
    [4, 40]
    """

    views = 1  # augmented views per sample

    def __init__(self, loss: ClassLoss) -> None:
        super().__init__()
        self.loss = loss

    def prepare(self, run: TrainingRun) -> None:
        """Modify ``run.model``, create additional networks, and validate the run."""

    def mixing_conflict(self) -> str:
        """Return why the method does not support ``--mix``, or an empty string if it does."""
        hard = [each for each in self.modules() if isinstance(each, ClassLoss) and not each.soft_targets]
        return f"{type(hard[0]).__name__} needs class indices as targets" if hard else ""

    def stages(self) -> Sequence[Stage]:
        """Return the stages in order."""
        return (Stage("train"),)

    def stage_start(self, run: TrainingRun) -> None:
        """Set up a stage: ``run.order``, frozen parameters, fresh weights. The optimizer is created afterward."""

    def parameter_groups(self, run: TrainingRun) -> list[dict[str, Any]]:
        """Return the optimizer's parameter groups: the model, and the parameters of the loss without weight decay."""
        own = [parameter for parameter in self.parameters() if parameter.requires_grad]
        groups: list[dict[str, Any]] = [{"params": [each for each in run.model.parameters() if each.requires_grad]}]
        if own:
            rate = run.config.loss_lr
            groups.append({"params": own, "weight_decay": 0.0} | ({} if rate is None else {"lr": rate}))
        return groups

    def epoch_start(self, run: TrainingRun) -> None:
        """Run before the first batch of an epoch."""

    def objective(self, run: TrainingRun, batch: Batch) -> Tensor:
        """Compute the loss of a batch in one forward pass.

        Sharpness-aware steps call it twice per batch. In the second call ``loss.updates`` is False, and no state may
        change.
        """
        logits = run.forward(batch.inputs)
        return self.loss(logits, batch.targets, features=run.tap.features, head=run.tap.head, index=batch.rows)

    def step(self, run: TrainingRun, batch: Batch) -> None:
        """Take one optimizer step on a batch."""
        run.backward(self.objective, batch)
        run.update()

    def stage_end(self, run: TrainingRun) -> None:
        """Run after the last epoch of a stage."""

    def finish(self, run: TrainingRun) -> None:
        """Apply post-hoc changes after the last stage, when ``run.model`` has the selected weights."""

    def findings(self) -> dict[str, float]:
        """Return values for the last line of the metrics."""
        return {}

    @torch.no_grad()
    def predict(self, run: TrainingRun, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits and features in evaluation mode."""
        return run.forward(inputs), run.tap.features
