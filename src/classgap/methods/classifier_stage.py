"""Base class of methods that retrain the classifier in a final stage, with class-balanced sampling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from classgap.data.sampling.orders import ClassBalancedOrder
from classgap.losses.arguments import check_float
from classgap.losses.cross_entropy import CrossEntropyLoss
from classgap.methods.method import Method, Stage
from classgap.methods.wrapper import MethodWrapper
from classgap.models.heads import linear_head

if TYPE_CHECKING:
    from classgap.data.batch import Batch
    from classgap.losses.base import ClassLoss
    from classgap.methods.protocol import TrainingRun


class ClassifierStage(MethodWrapper):
    """Train another method, then minimize cross-entropy over the parameters that ``prepare_head`` leaves trainable.

    The encoder is frozen and in evaluation mode. An epoch draws as many samples as the training set has.

    Args:
        inner: Method that trains the encoder.
        num_classes: Number of classes K.
        fraction: Length of the stage, as a fraction of the run's epochs.
    """

    name = "classifier stage"

    def __init__(self, inner: Method, num_classes: int, *, fraction: float) -> None:
        super().__init__(inner)
        self.fraction = check_float("fraction", fraction, gt=0)
        self.own_loss = CrossEntropyLoss(num_classes)
        self.retrains = False  # True in the final stage

    def prepare_head(self, head: nn.Linear, model: nn.Module) -> None:
        """Prepare the head: set ``requires_grad`` of the parameters to train."""
        raise TypeError(f"{type(self).__name__} must define prepare_head(head, model)")

    @property
    def loss(self) -> ClassLoss:  # type: ignore[override]
        """Loss of the current stage."""
        return self.own_loss if self.retrains else self.inner.loss

    @property
    def views(self) -> int:  # type: ignore[override]
        """Augmented views per sample: one in the final stage."""
        return 1 if self.retrains else self.inner.views

    def prepare(self, run: TrainingRun) -> None:
        """Prepare the wrapped method; require a linear head and no weight interpolation."""
        super().prepare(run)
        linear_head(run.model, self.name)
        if run.config.wise_ft_alpha < 1:
            raise ValueError(
                f"{self.name} replaces the classifier, so initial and final weights cannot be interpolated: "
                f"wise_ft_alpha must be 1, got {run.config.wise_ft_alpha}."
            )

    def stages(self) -> Sequence[Stage]:
        """Append the final stage."""
        return [*self.inner.stages(), Stage("re-training", fraction=self.fraction)]

    def stage_start(self, run: TrainingRun) -> None:
        """In the final stage, freeze the model, balance the sampling and prepare the head."""
        self.retrains = run.position.stage == len(self.inner.stages())
        if not self.retrains:
            super().stage_start(run)
            return
        run.model.requires_grad_(False)
        run.order = ClassBalancedOrder(run.train.targets, run.config.seed)
        self.prepare_head(linear_head(run.model, self.name), run.model)

    def parameter_groups(self, run: TrainingRun) -> list[dict[str, Any]]:
        """Return the trainable parameters."""
        if not self.retrains:
            return super().parameter_groups(run)
        return [{"params": [each for each in run.model.parameters() if each.requires_grad]}]

    def epoch_start(self, run: TrainingRun) -> None:
        """Delegate in the stages of the wrapped method."""
        if not self.retrains:
            super().epoch_start(run)

    def objective(self, run: TrainingRun, batch: Batch) -> Tensor:
        """Compute cross-entropy in the final stage."""
        if not self.retrains:
            return super().objective(run, batch)
        run.model.eval()  # keeps batch norm statistics, disables dropout
        return Method.objective(self, run, batch)

    def step(self, run: TrainingRun, batch: Batch) -> None:
        """Take a plain step in the final stage."""
        if self.retrains:
            Method.step(self, run, batch)
        else:
            super().step(run, batch)

    def stage_end(self, run: TrainingRun) -> None:
        """Delegate in the stages of the wrapped method."""
        if not self.retrains:
            super().stage_end(run)
