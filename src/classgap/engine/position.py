"""Where a run is."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass
class Position:
    """What is done: whole stages, whole epochs of the current stage, steps of the current epoch.

    Attributes:
        stage: number of the current stage.
        epoch: number of the current epoch in its stage.
        step: steps done in this epoch.
        updates: steps done in this stage.
    """

    stage: int = 0
    epoch: int = 0
    step: int = 0
    updates: int = 0

    def after_step(self) -> None:
        """A step was done."""
        self.step += 1
        self.updates += 1

    def after_epoch(self) -> None:
        """An epoch was done."""
        self.epoch += 1
        self.step = 0

    def after_stage(self) -> None:
        """A stage was done."""
        self.stage += 1
        self.epoch = self.step = self.updates = 0

    def to_dict(self) -> dict[str, int]:
        """For a checkpoint."""
        return asdict(self)
