"""The optimiser and the course of its learning rate."""

from __future__ import annotations

from typing import Any

import torch
from torch.optim import Optimizer

from classgap.engine.config import TrainConfig
from classgap.engine.schedule import Schedule, milestone_updates

FUSED = ("cpu", "cuda")  # where PyTorch 2.4 has fused optimisers


def make_optimizer(config: TrainConfig, groups: list[dict[str, Any]]) -> Optimizer:
    """SGD or AdamW over groups of parameters, of which each may have a rate of its own."""
    assert config.lr is not None
    assert config.weight_decay is not None
    groups = [group for group in groups if group["params"]]
    if not groups:
        raise ValueError(f"method {config.method} with model {config.model} trains nothing: all parameters are frozen.")
    # One kernel for all of a parameter's arithmetic, which in small networks is a good part of a step.
    fused = all(each.device.type in FUSED for group in groups for each in group["params"])
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


def warmup_updates(config: TrainConfig, steps: int) -> int:
    """Updates of the warm-up, with ``steps`` in an epoch."""
    return config.warmup_steps or round(config.warmup_epochs * steps)


def make_schedule(config: TrainConfig, *, updates: int, steps: int) -> Schedule:
    """The schedule of a stage of ``updates`` updates, ``steps`` in an epoch."""
    return Schedule(
        config.schedule,
        total=updates,
        warmup=warmup_updates(config, steps),
        milestones=milestone_updates(config.milestones, updates, steps),
        gamma=config.gamma,
    )
