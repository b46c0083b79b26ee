"""``classgap train``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import tyro
from tyro.conf import arg

from classgap.engine.config import TrainConfig
from classgap.engine.config_file import read_settings


@dataclass(frozen=True, kw_only=True)
class TrainCommand(TrainConfig):
    """Train a classifier, test it once, and audit it class by class.

      Everything goes into one directory: settings, metrics, checkpoints,
      predictions, audit.json and report.html. Run the same command again and
      it goes on where it was interrupted, to the same result.

    Examples:
      classgap train --data mnist1d --method mr2
      classgap train --data folder:photos:size=64 --validation 0.1 --select hard
      torchrun --nproc-per-node 2 -m classgap train --data cifar100 --method mr2
    """

    config: Annotated[Path | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """YAML file of settings, named like the flags; flags win over it."""

    dry_run: bool = False
    """Show what would be run, and stop."""

    force: bool = False
    """Start over, even if the directory holds a run."""

    @classmethod
    def preset(cls, words: Sequence[str]) -> Any:
        """What the flags change: the settings of ``--config``, which is read before the other flags."""
        file = _value_of("--config", words)
        settings: dict[str, Any] = {"data": tyro.MISSING}
        return cls(**(settings if file is None else settings | read_settings(Path(file))))

    def settings(self) -> TrainConfig:
        """What to train, without what concerns this command alone."""
        return TrainConfig(**{field.name: getattr(self, field.name) for field in fields(TrainConfig)})

    def run(self) -> None:
        """Train and tell."""
        from classgap.cli.telling import tell_plan, tell_trained
        from classgap.engine import Stopped, train

        if self.dry_run:
            tell_plan(self.settings())
            return
        try:
            trained = train(self.settings(), force=self.force)
        except Stopped as stopped:
            print(f"classgap: {stopped}")
            return
        if trained.first:
            tell_trained(trained)


def _value_of(flag: str, words: Sequence[str]) -> str | None:
    """What follows a flag, or stands behind its equals sign."""
    for i, word in enumerate(words):
        if word == flag and i + 1 < len(words):
            return words[i + 1]
        if word.startswith(f"{flag}="):
            return word.removeprefix(f"{flag}=")
    return None
