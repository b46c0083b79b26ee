"""``classgap train``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

from classgap.cli.parser import Arg, Command
from classgap.engine.config import TrainConfig, read_settings

ALTERNATIVES = {
    "epochs": "max_steps",
    "max_steps": "epochs",
    "warmup_epochs": "warmup_steps",
    "warmup_steps": "warmup_epochs",
}

_by_data = Arg(default="depends on the data")


@dataclass(frozen=True, kw_only=True)
class TrainCommand(TrainConfig, Command):
    """Train a classifier and audit it class by class.

    All output goes to one directory: settings, metrics, checkpoints,
    predictions, audit.json and report.html. To resume an interrupted run,
    rerun the command. On a CPU, the result is bit-identical to that of an
    uninterrupted run.

    Examples:
      classgap train --data mnist1d --method mr2
      classgap train --data folder:photos:size=64 --val-fraction 0.1 --monitor hard
      torchrun --nproc-per-node 2 -m classgap train --data cifar100 --method mr2
    """

    ARGS: ClassVar[Mapping[str, Arg]] = {
        "model": _by_data,
        "epochs": _by_data,
        "batch_size": _by_data,
        "lr": _by_data,
        "weight_decay": _by_data,
        "augment": _by_data,
        "loss_lr": Arg(default="--lr"),
        "warmup_start_factor": Arg(default="1 / number of warmup steps"),
        "swa_lr": Arg(default="follow --schedule"),
        "out": Arg("DIR", default="runs/DATA-METHOD-seedN"),
    }
    GROUPS: ClassVar[Mapping[str, Sequence[str]]] = {
        "data, model and method": ("data", "model", "method", "seed"),
        "optimization": (
            *("batch_size", "micro_batches", "optimizer", "lr", "loss_lr"),
            *("momentum", "nesterov", "weight_decay", "layer_decay", "clip_grad"),
        ),
        "schedule": (
            *("epochs", "max_steps", "schedule", "warmup_epochs", "warmup_steps", "warmup_start_factor"),
            *("min_lr", "milestones", "gamma"),
        ),
        "augmentation and sampling": ("augment", "mix", "sampler"),
        "validation": ("val_fraction", "val_fold", "split_seed", "monitor"),
        "weight averaging": ("ema_decay", "swa_start", "swa_lr", "wise_ft_alpha"),
        "hardware": ("device", "precision", "channels_last", "compile"),
        "output": (
            *("out", "overwrite", "save_every", "save_features", "save_train_features", "class_stats"),
            *("audit", "tensorboard"),
        ),
    }

    config: Path | None = None
    """YAML file of settings, keyed by option name. Options on the command line override it; --no-OPTION turns off a
    setting that is true in the file."""

    dry_run: bool = False
    """Print the settings and exit without training."""

    overwrite: bool = False
    """Discard an existing run in the directory and start over."""

    @classmethod
    def complete(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Add the settings of ``--config`` that no option on the command line overrides."""
        settings = {} if given.get("config") is None else read_settings(given["config"])
        replaced = {ALTERNATIVES.get(name) for name, value in given.items() if value is not None}
        return {name: value for name, value in settings.items() if name not in replaced} | dict(given)

    def settings(self) -> TrainConfig:
        """Return the training settings without the options of this command."""
        return TrainConfig(**{field.name: getattr(self, field.name) for field in fields(TrainConfig)})

    def run(self) -> None:
        """Train, then print the audit."""
        from classgap.cli.training_output import is_rank_zero, print_plan, print_result, raise_interrupted
        from classgap.engine import TrainingInterrupted, train

        settings = self.settings()
        if self.dry_run:
            if is_rank_zero():
                print_plan(settings)
            return
        try:
            result = train(settings, overwrite=self.overwrite)
        except TrainingInterrupted as interruption:
            raise_interrupted(interruption)
        if result.is_main_process:
            print_result(result)
