"""A last stage that trains the classifier again, with classes equally often, on features as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from classgap.data.sampling.order import ClassBalanced
from classgap.losses.arguments import check_float
from classgap.losses.cross_entropy import CrossEntropyLoss
from classgap.methods.method import Method, Stage
from classgap.methods.wrapper import MethodWrapper
from classgap.models.heads import linear_head

if TYPE_CHECKING:
    from classgap.data.batches import Batch
    from classgap.engine.run import Run
    from classgap.losses.base import ClassLoss


class ClassifierStage(MethodWrapper):
    """Does what another method does, then minimises cross-entropy over what a subclass makes of the head.

    The encoder is frozen and in evaluation mode. An epoch has as many draws as there are training samples.

    Args:
        inner: what trains the encoder.
        num_classes: K.
        share: of the run's epochs, for this stage.
    """

    name = "classifier stage"

    def __init__(self, inner: Method, num_classes: int, *, share: float) -> None:
        super().__init__(inner)
        self.share = check_float("share", share, gt=0)
        self.own_loss = CrossEntropyLoss(num_classes)
        self.retrains = False  # whether this is the last stage

    def trained_head(self, head: nn.Linear, model: nn.Module) -> None:
        """Prepare the head for its stage; only what has gradients is trained."""
        raise TypeError(f"{type(self).__name__} must define trained_head(head, model)")

    @property
    def loss(self) -> ClassLoss:  # type: ignore[override]
        """What the current stage minimises."""
        return self.own_loss if self.retrains else self.inner.loss

    @property
    def views(self) -> int:  # type: ignore[override]
        """Those of the other method, or one."""
        return 1 if self.retrains else self.inner.views

    def prepare(self, run: Run) -> None:
        """As the other method; the head has to be linear, and weights those that the last stage leaves."""
        super().prepare(run)
        linear_head(run.model, self.name)
        if run.config.wise_ft_alpha < 1:
            raise ValueError(
                f"{self.name} exchanges the classifier, so there is none between the first and the last; interpolate "
                f"must be 1, got {run.config.wise_ft_alpha}."
            )

    def stages(self) -> Sequence[Stage]:
        """One more than the other method has."""
        return [*self.inner.stages(), Stage("re-training", share=self.share)]

    def stage_start(self, run: Run) -> None:
        """In the last stage: freeze, balance, and prepare the head."""
        self.retrains = run.position.stage == len(self.inner.stages())
        if not self.retrains:
            super().stage_start(run)
            return
        run.model.requires_grad_(False)
        run.order = ClassBalanced(run.train.targets, run.config.seed)
        self.trained_head(linear_head(run.model, self.name), run.model)

    def parameter_groups(self, run: Run) -> list[dict[str, Any]]:
        """What is left to train."""
        if not self.retrains:
            return super().parameter_groups(run)
        return [{"params": [each for each in run.model.parameters() if each.requires_grad]}]

    def epoch_start(self, run: Run) -> None:
        """As the other method, in its stages."""
        if not self.retrains:
            super().epoch_start(run)

    def objective(self, run: Run, batch: Batch) -> Tensor:
        """Cross-entropy of the head's stage."""
        if not self.retrains:
            return super().objective(run, batch)
        run.model.eval()  # a frozen encoder keeps its batch statistics and drops nothing
        return Method.objective(self, run, batch)

    def step(self, run: Run, batch: Batch) -> None:
        """The plain step, in the head's stage."""
        if self.retrains:
            Method.step(self, run, batch)
        else:
            super().step(run, batch)

    def stage_end(self, run: Run) -> None:
        """As the other method, in its stages."""
        if not self.retrains:
            super().stage_end(run)
