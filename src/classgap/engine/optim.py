"""Optimizer, learning-rate schedule and mixed precision."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch.optim import Optimizer

from classgap.engine.averaging import swa_start_epoch
from classgap.engine.config import TrainConfig

FUSED_DEVICES = ("cpu", "cuda")  # devices with fused optimizers in PyTorch 2.4
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def make_optimizer(config: TrainConfig, groups: list[dict[str, Any]]) -> Optimizer:
    """Build SGD or AdamW over parameter groups, which may set their own learning rate.

    Raises:
        ValueError: If all parameters are frozen.
    """
    assert config.lr is not None
    assert config.weight_decay is not None
    groups = [group for group in groups if group["params"]]
    if not groups:
        raise ValueError(
            f"method {config.method} with model {config.model} has nothing to train: all parameters are frozen."
        )
    # Fusing the update of a parameter into one kernel saves much of a step's time in small networks.
    fused = all(each.device.type in FUSED_DEVICES for group in groups for each in group["params"])
    if config.optimizer == "adamw":
        optimizer: Optimizer = torch.optim.AdamW(groups, lr=config.lr, weight_decay=config.weight_decay, fused=fused)
    else:
        optimizer = torch.optim.SGD(
            groups,
            lr=config.lr,
            momentum=config.momentum,
            nesterov=config.nesterov,
            weight_decay=config.weight_decay,
            fused=fused,
        )
    for group in optimizer.param_groups:
        group["initial_lr"] = group["lr"]
    return optimizer


@dataclass(frozen=True)
class Schedule:
    """Learning rate at each update of a stage, relative to its peak: a pure function of the update count.

    During W warmup updates the factor rises linearly: (t + 1)/W, or s + (1 - s) t/W from a start factor s. Afterward
    "cosine" decays as m + (1 - m) ½(1 + cos π(t - W)/(T - W)) with the minimum m, "step" multiplies by gamma at each
    milestone, and "constant" stays at 1.

    Args:
        shape: "cosine", "step" or "constant".
        total: T, the number of updates in the stage.
        warmup: W, the number of warmup updates.
        milestones: Updates at which "step" decays, counted from the start of the stage.
        gamma: Decay factor of "step".
        constant_from: Update from which the factor is ``constant``, as in the epochs that SWA averages.
        constant: Factor from then on.
        warmup_start: s, the factor at the first warmup update; ``None`` for 1/W, which reaches 1 an update earlier.
        minimum: m, the factor at the end of "cosine".

    >>> schedule = Schedule("cosine", total=102, warmup=2)
    >>> [round(schedule.factor(t), 3) for t in (0, 1, 2, 52, 101)]
    [0.5, 1.0, 1.0, 0.5, 0.0]
    """

    shape: str
    total: int
    warmup: int = 0
    milestones: Sequence[int] = ()
    gamma: float = 0.1
    constant_from: int | None = None
    constant: float = 1.0
    warmup_start: float | None = None
    minimum: float = 0.0

    def factor(self, update: int) -> float:
        """Return the factor at an update, counted from 0."""
        if self.constant_from is not None and update >= self.constant_from:
            return self.constant
        if update < self.warmup:
            if self.warmup_start is None:
                return (update + 1) / self.warmup
            return self.warmup_start + (1 - self.warmup_start) * update / self.warmup
        if self.shape == "cosine":
            left = max(1, self.total - self.warmup)
            decay = 0.5 * (1 + math.cos(math.pi * min(1.0, (update - self.warmup) / left)))
            return self.minimum + (1 - self.minimum) * decay
        if self.shape == "step":
            return float(self.gamma ** sum(update >= milestone for milestone in self.milestones))
        return 1.0


def make_schedule(config: TrainConfig, *, updates: int, steps_per_epoch: int, epochs: int) -> Schedule:
    """Build the schedule of a stage with ``updates`` updates in ``epochs`` epochs."""
    assert config.lr is not None
    constant = config.swa_start is not None and config.swa_lr is not None
    return Schedule(
        config.schedule,
        total=updates,
        warmup=warmup_updates(config, steps_per_epoch),
        milestones=milestone_updates(config.milestones, updates, steps_per_epoch),
        gamma=config.gamma,
        constant_from=swa_start_epoch(config.swa_start or 0, epochs) * steps_per_epoch if constant else None,
        constant=(config.swa_lr or 0) / config.lr,
        warmup_start=config.warmup_start_factor,
        minimum=config.min_lr / config.lr,
    )


def warmup_updates(config: TrainConfig, steps_per_epoch: int) -> int:
    """Return the number of warmup updates."""
    return config.warmup_steps or round(config.warmup_epochs * steps_per_epoch)


def milestone_updates(milestones: Sequence[float], updates: int, steps_per_epoch: int) -> tuple[int, ...]:
    """Convert milestones to updates; values below 1 are fractions of the stage, others are epochs.

    >>> milestone_updates((0.5, 3), updates=40, steps_per_epoch=10)
    (20, 30)
    """
    return tuple(round(each * (updates if each < 1 else steps_per_epoch)) for each in milestones)


def autocast(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """Return an autocast context for "bf16" or "fp16"; "fp32" has no effect."""
    if precision == "fp32":
        return nullcontext()
    return torch.autocast(device.type, dtype=DTYPES[precision])


def make_grad_scaler(precision: str, device: torch.device) -> torch.amp.GradScaler:
    """Return a gradient scaler, enabled for fp16 only."""
    return torch.amp.GradScaler(device.type, enabled=precision == "fp16")
