"""A method around another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from classgap.methods.method import Method, Stage

if TYPE_CHECKING:
    from classgap.data.batch import Batch
    from classgap.engine.run import Run
    from classgap.losses.base import ClassLoss


class MethodWrapper(Method):
    """Does at every moment what another method does; a subclass changes some of them.

    Args:
        inner: the other method, a child of this one.
    """

    def __init__(self, inner: Method) -> None:
        nn.Module.__init__(self)
        self.inner = inner

    @property
    def loss(self) -> ClassLoss:  # type: ignore[override]  # that of the other method, never a second child
        """What the other method minimises."""
        return self.inner.loss

    @property
    def views(self) -> int:  # type: ignore[override]
        """Augmented views that the other method wants."""
        return self.inner.views

    def prepare(self, run: Run) -> None:
        """As the other method."""
        self.inner.prepare(run)

    def refuses_mixing(self) -> str:
        """As the other method, and for a loss of its own."""
        return self.inner.refuses_mixing() or super().refuses_mixing()

    def stages(self) -> Sequence[Stage]:
        """As the other method."""
        return self.inner.stages()

    def stage_start(self, run: Run) -> None:
        """As the other method."""
        self.inner.stage_start(run)

    def parameter_groups(self, run: Run) -> list[dict[str, Any]]:
        """As the other method."""
        return self.inner.parameter_groups(run)

    def epoch_start(self, run: Run) -> None:
        """As the other method."""
        self.inner.epoch_start(run)

    def objective(self, run: Run, batch: Batch) -> Tensor:
        """As the other method."""
        return self.inner.objective(run, batch)

    def step(self, run: Run, batch: Batch) -> None:
        """As the other method."""
        self.inner.step(run, batch)

    def stage_end(self, run: Run) -> None:
        """As the other method."""
        self.inner.stage_end(run)

    def finish(self, run: Run) -> None:
        """As the other method."""
        self.inner.finish(run)

    def findings(self) -> dict[str, float]:
        """As the other method."""
        return self.inner.findings()

    def predict(self, run: Run, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """As the other method."""
        return self.inner.predict(run, inputs)
