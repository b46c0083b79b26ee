"""Methods of several stages, each with a loss of its own and a part of the model that it trains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from torch import Tensor, nn

from classgap.losses.base import ClassLoss
from classgap.methods.method import Method, Stage
from classgap.models.heads import head_of

if TYPE_CHECKING:
    from classgap.data.batch import Batch
    from classgap.engine.run import Run

Part = Literal["model", "encoder", "head"]


@dataclass(frozen=True)
class Phase:
    """A stage, what it minimises, what it trains, and at which share of the run's learning rate."""

    stage: Stage
    loss: ClassLoss
    trains: Part = "model"
    rate: float = 1.0


class StagedMethod(Method):
    """Goes through phases. While the head alone is trained, the encoder is in evaluation mode.

    Args:
        phases: in order; their stages have different names.
    """

    def __init__(self, *phases: Phase) -> None:
        nn.Module.__init__(self)
        self.losses = nn.ModuleDict({phase.stage.name: phase.loss for phase in phases})
        self.phases, self.phase = phases, phases[0]
        self._trainable: frozenset[str] = frozenset()

    @property
    def loss(self) -> ClassLoss:  # type: ignore[override]  # that of the phase, never a second child
        """What the current phase minimises."""
        return self.phase.loss

    def prepare(self, run: Run) -> None:
        """Note what is trainable at all, as a model may come with frozen layers."""
        self._trainable = frozenset(name for name, each in run.model.named_parameters() if each.requires_grad)

    def stages(self) -> Sequence[Stage]:
        """Those of the phases."""
        return [phase.stage for phase in self.phases]

    def stage_start(self, run: Run) -> None:
        """Freeze what the phase does not train."""
        self.phase = self.phases[run.position.stage]
        own = {id(parameter) for parameter in head_of(run.model).parameters()}
        for name, parameter in run.model.named_parameters():
            chosen = self.phase.trains == "model" or (id(parameter) in own) == (self.phase.trains == "head")
            parameter.requires_grad_(chosen and name in self._trainable)

    def parameter_groups(self, run: Run) -> list[dict[str, Any]]:
        """What the phase trains, and what its loss owns."""
        assert run.config.lr is not None
        rate = self.phase.rate * run.config.lr
        groups: list[dict[str, Any]] = [
            {"params": [each for each in run.model.parameters() if each.requires_grad], "lr": rate}
        ]
        own = list(self.loss.parameters())
        return [*groups, {"params": own, "weight_decay": 0.0, "lr": run.config.loss_lr or rate}] if own else groups

    def objective(self, run: Run, batch: Batch) -> Tensor:
        """The phase's loss of a batch."""
        if self.phase.trains == "head":  # a frozen encoder keeps its batch statistics and drops nothing
            run.model.eval()
        return super().objective(run, batch)
