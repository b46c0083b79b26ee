"""Base class of methods that wrap another method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from classgap.methods.method import Method, Stage

if TYPE_CHECKING:
    from classgap.data.batch import Batch
    from classgap.losses.base import ClassLoss
    from classgap.methods.protocol import TrainingRun


class MethodWrapper(Method):
    """Delegate every hook to another method; subclasses override some of them.

    Args:
        inner: The wrapped method, registered as a child module.
    """

    def __init__(self, inner: Method) -> None:
        nn.Module.__init__(self)
        self.inner = inner

    @property
    def loss(self) -> ClassLoss:  # type: ignore[override]  # not registered as a second child
        """Loss of the wrapped method."""
        return self.inner.loss

    @property
    def views(self) -> int:  # type: ignore[override]
        """Augmented views per sample."""
        return self.inner.views

    def prepare(self, run: TrainingRun) -> None:
        """Delegate to the wrapped method."""
        self.inner.prepare(run)

    def mixing_conflict(self) -> str:
        """Combine the wrapped method's reason with that of this method's own losses."""
        return self.inner.mixing_conflict() or super().mixing_conflict()

    def stages(self) -> Sequence[Stage]:
        """Delegate to the wrapped method."""
        return self.inner.stages()

    def stage_start(self, run: TrainingRun) -> None:
        """Delegate to the wrapped method."""
        self.inner.stage_start(run)

    def parameter_groups(self, run: TrainingRun) -> list[dict[str, Any]]:
        """Delegate to the wrapped method."""
        return self.inner.parameter_groups(run)

    def epoch_start(self, run: TrainingRun) -> None:
        """Delegate to the wrapped method."""
        self.inner.epoch_start(run)

    def objective(self, run: TrainingRun, batch: Batch) -> Tensor:
        """Delegate to the wrapped method."""
        return self.inner.objective(run, batch)

    def step(self, run: TrainingRun, batch: Batch) -> None:
        """Delegate to the wrapped method."""
        self.inner.step(run, batch)

    def stage_end(self, run: TrainingRun) -> None:
        """Delegate to the wrapped method."""
        self.inner.stage_end(run)

    def finish(self, run: TrainingRun) -> None:
        """Delegate to the wrapped method."""
        self.inner.finish(run)

    def findings(self) -> dict[str, float]:
        """Delegate to the wrapped method."""
        return self.inner.findings()

    def predict(self, run: TrainingRun, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Delegate to the wrapped method."""
        return self.inner.predict(run, inputs)
