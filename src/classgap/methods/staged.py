"""Base class of multi-stage methods: each stage has its own loss and trains a part of the model."""

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
    from classgap.methods.protocol import TrainingRun

Part = Literal["model", "encoder", "head"]


@dataclass(frozen=True)
class Phase:
    """A stage with its loss, the part of the model that it trains, and a factor on the run's learning rate."""

    stage: Stage
    loss: ClassLoss
    trains: Part = "model"
    rate: float = 1.0


class StagedMethod(Method):
    """Train in phases. The encoder is in evaluation mode while only the head is trained.

    Args:
        phases: Phases in order; the names of their stages must differ.
    """

    def __init__(self, *phases: Phase) -> None:
        nn.Module.__init__(self)
        self.losses = nn.ModuleDict({phase.stage.name: phase.loss for phase in phases})
        self.phases, self.phase = phases, phases[0]
        self._trainable: frozenset[str] = frozenset()

    @property
    def loss(self) -> ClassLoss:  # type: ignore[override]  # not registered as a second child
        """Loss of the current phase."""
        return self.phase.loss

    def prepare(self, run: TrainingRun) -> None:
        """Record the trainable parameters, since a model may have frozen layers."""
        self._trainable = frozenset(name for name, each in run.model.named_parameters() if each.requires_grad)

    def stages(self) -> Sequence[Stage]:
        """Return the stages of the phases."""
        return [phase.stage for phase in self.phases]

    def stage_start(self, run: TrainingRun) -> None:
        """Freeze the parameters that the phase does not train."""
        self.phase = self.phases[run.position.stage]
        own = {id(parameter) for parameter in head_of(run.model).parameters()}
        for name, parameter in run.model.named_parameters():
            chosen = self.phase.trains == "model" or (id(parameter) in own) == (self.phase.trains == "head")
            parameter.requires_grad_(chosen and name in self._trainable)

    def parameter_groups(self, run: TrainingRun) -> list[dict[str, Any]]:
        """Return the parameters that the phase trains, and those of its loss."""
        assert run.config.lr is not None
        rate = self.phase.rate * run.config.lr
        groups: list[dict[str, Any]] = [
            {"params": [each for each in run.model.parameters() if each.requires_grad], "lr": rate}
        ]
        own = list(self.loss.parameters())
        return [*groups, {"params": own, "weight_decay": 0.0, "lr": run.config.loss_lr or rate}] if own else groups

    def objective(self, run: TrainingRun, batch: Batch) -> Tensor:
        """Compute the loss of the phase."""
        if self.phase.trains == "head":  # keeps batch norm statistics, disables dropout
            run.model.eval()
        return super().objective(run, batch)
