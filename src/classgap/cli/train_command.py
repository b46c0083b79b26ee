"""``classgap train``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import tyro
from tyro.conf import arg

from classgap.engine.config import TrainConfig, read_settings

RIVALS = {"epochs": "steps", "steps": "epochs", "warmup_epochs": "warmup_steps", "warmup_steps": "warmup_epochs"}


@dataclass(frozen=True, kw_only=True)
class TrainCommand(TrainConfig):
    """Train a classifier, test it once, and audit it class by class.

      Everything goes into one directory: settings, metrics, checkpoints,
      predictions, audit.json and report.html. Run the same command again and
      it goes on where it was interrupted, on a CPU to the same result.

    Examples:
      classgap train --data mnist1d --method mr2
      classgap train --data folder:photos:size=64 --val-fraction 0.1 --monitor hard
      torchrun --nproc-per-node 2 -m classgap train --data cifar100 --method mr2
    """

    config: Annotated[Path | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """YAML file of settings, named like the flags; flags win over it."""

    dry_run: bool = False
    """Show what would be run, and stop."""

    overwrite: bool = False
    """Start over, even if the directory holds a run."""

    def __post_init__(self) -> None:
        """Check nothing yet: a file's settings may lack what the flags add; :meth:`settings` checks them together."""

    @classmethod
    def preset(cls, words: Sequence[str]) -> Any:
        """What the flags change: the settings of ``--config``, without those that a flag stands in place of."""
        file = _value_of("--config", words)
        found = {} if file is None else read_settings(Path(file))
        for name, rival in RIVALS.items():
            if _value_of(f"--{name.replace('_', '-')}", words) not in (None, "None"):
                found.pop(rival, None)
        return cls(**({"data": tyro.MISSING} | found))

    def settings(self) -> TrainConfig:
        """What to train, checked, without what concerns this command alone."""
        return TrainConfig(**{field.name: getattr(self, field.name) for field in fields(TrainConfig)})

    def run(self) -> None:
        """Train and tell."""
        from classgap.cli.training_output import is_first, tell_plan, tell_stopped, tell_trained
        from classgap.engine import TrainingInterrupted, train

        settings = self.settings()
        if self.dry_run:
            if is_first():
                tell_plan(settings)
            return
        try:
            result = train(settings, overwrite=self.overwrite)
        except TrainingInterrupted as stopped:
            tell_stopped(stopped)
            return
        if result.is_main_process:
            tell_trained(result)


def _value_of(flag: str, words: Sequence[str]) -> str | None:
    """What follows a flag, or stands behind its equals sign."""
    for i, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name.replace("_", "-") != flag:  # --warmup_steps is understood too
            continue
        if equals:
            return value
        if i + 1 < len(words):
            return words[i + 1]
    return None
