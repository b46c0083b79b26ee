"""The course of the learning rate: a pure function of the number of updates made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """The factor of the highest learning rate at each update of a stage.

    For W warm-up updates it rises linearly, (t + 1)/W. Then "cosine" falls as ½(1 + cos π(t - W)/(T - W)), "step" is
    multiplied by gamma at each milestone (counted from the start of the stage), "constant" stays.

    Args:
        shape: "cosine", "step" or "constant".
        total: T, updates of the stage.
        warmup: W.
        milestones: updates at which "step" falls.
        gamma: factor of a fall.

    >>> schedule = Schedule("cosine", total=102, warmup=2)
    >>> [round(schedule.factor(t), 3) for t in (0, 1, 2, 52, 101)]
    [0.5, 1.0, 1.0, 0.5, 0.0]
    """

    shape: str
    total: int
    warmup: int = 0
    milestones: Sequence[int] = ()
    gamma: float = 0.1

    def factor(self, update: int) -> float:
        """The factor at an update, counted from 0."""
        if update < self.warmup:
            return (update + 1) / self.warmup
        if self.shape == "cosine":
            left = max(1, self.total - self.warmup)
            return 0.5 * (1 + math.cos(math.pi * min(1.0, (update - self.warmup) / left)))
        if self.shape == "step":
            return float(self.gamma ** sum(update >= milestone for milestone in self.milestones))
        return 1.0


def milestone_updates(milestones: Sequence[float], updates: int, steps: int) -> tuple[int, ...]:
    """Milestones in updates; given in epochs of ``steps``, or as shares of the stage's updates where they are below 1.

    >>> milestone_updates((0.5, 3), updates=40, steps=10)
    (20, 30)
    """
    return tuple(round(each * (updates if each < 1 else steps)) for each in milestones)
