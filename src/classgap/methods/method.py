"""What a training procedure adds to the plain loop: the moments at which the engine asks it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from classgap.losses.base import ClassLoss

if TYPE_CHECKING:
    from classgap.data.batch import Batch
    from classgap.engine.run import Run


@dataclass(frozen=True)
class Stage:
    """A part of the training with an optimiser and a schedule of its own.

    Attributes:
        name: for metrics and progress.
        share: of the run's epochs, or of its steps.
    """

    name: str
    share: float = 1.0

    def length(self, total: int) -> int:
        """Epochs, or steps, of this stage in a run that asks for so many.

        >>> Stage("warm-up", share=0.25).length(40)
        10
        """
        return max(1, round(self.share * total))


class Method(nn.Module):
    """A training procedure; this one is a loss and nothing else.

    The engine calls, in this order: ``prepare`` once; for each of ``stages()``: ``stage_start``, for each epoch
    ``epoch_start`` and ``step`` for each batch, then ``stage_end``; at last ``finish``.

    A method is a module: what it remembers is a buffer, a second network is a child, and both are saved and restored
    with every checkpoint. On resume the engine calls ``prepare``, restores the method's state, calls ``stage_start`` of
    the current stage again, and restores everything else. So ``stage_start`` depends on the method's state alone, and
    what a pass over the data finds out belongs in ``stage_end`` or ``epoch_start``, which do not run twice.

    Args:
        loss: what is minimised.

    >>> from classgap.losses import CrossEntropyLoss
    >>> class WarmedUp(Method):
    ...     def stages(self):
    ...         return (Stage("warm-up", share=0.1), Stage("train"))
    >>> [stage.length(40) for stage in WarmedUp(CrossEntropyLoss(num_classes=10)).stages()]
    [4, 40]
    """

    views = 1  # augmented views of each sample that a batch must hold

    def __init__(self, loss: ClassLoss) -> None:
        super().__init__()
        self.loss = loss

    def prepare(self, run: Run) -> None:
        """Change ``run.model``, make a second one, check that the run has what is needed."""

    def refuses_mixing(self) -> str:
        """Why samples must not be mixed (``--mix``); empty if they may be."""
        hard = [each for each in self.modules() if isinstance(each, ClassLoss) and not each.soft_targets]
        return f"{type(hard[0]).__name__} needs whole classes" if hard else ""

    def stages(self) -> Sequence[Stage]:
        """The parts of the training, one after the other."""
        return (Stage("train"),)

    def stage_start(self, run: Run) -> None:
        """Set up a stage: ``run.order``, frozen parameters, fresh weights. The optimiser is made after this."""

    def parameter_groups(self, run: Run) -> list[dict[str, Any]]:
        """What the stage trains: the model, and what the loss owns at a rate of its own."""
        own = [parameter for parameter in self.parameters() if parameter.requires_grad]
        groups: list[dict[str, Any]] = [{"params": [each for each in run.model.parameters() if each.requires_grad]}]
        if own:
            rate = run.config.loss_lr
            groups.append({"params": own, "weight_decay": 0.0} | ({} if rate is None else {"lr": rate}))
        return groups

    def epoch_start(self, run: Run) -> None:
        """Before an epoch's first batch."""

    def objective(self, run: Run, batch: Batch) -> Tensor:
        """The loss of a batch, after one forward pass.

        Sharpness-aware steps call it twice for a batch, the second time with ``loss.updates`` false: then nothing is
        remembered.
        """
        logits = run.forward(batch.inputs)
        return self.loss(logits, batch.targets, features=run.tap.features, head=run.tap.head, index=batch.rows)

    def step(self, run: Run, batch: Batch) -> None:
        """One update from one batch."""
        run.backward(self.objective, batch)
        run.update()

    def stage_end(self, run: Run) -> None:
        """After a stage's last epoch."""

    def finish(self, run: Run) -> None:
        """After the last stage, with the chosen weights in ``run.model``: post-hoc changes of the model."""

    def findings(self) -> dict[str, float]:
        """What training found out beside weights, for the last line of the metrics."""
        return {}

    @torch.no_grad()
    def predict(self, run: Run, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and features in evaluation."""
        return run.forward(inputs), run.tap.features
