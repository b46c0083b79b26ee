"""The files of a run: what they are called, who may write them, and what state they tell."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, BinaryIO

from classgap._atomic_write import atomic_write_text, remove_leftovers
from classgap.engine.config import TrainConfig
from classgap.engine.config_file import read_settings, write_config
from classgap.engine.storage.checkpoint import load_checkpoint
from classgap.engine.storage.disk import writing

# Where a run is stored and where it computes do not change what it is.
_ELSEWHERE = ("out", "device", "save_every", "report", "tensorboard")


class RunDirectory:
    """A directory that holds one run, finished or not.

    Files: ``config.yaml``, ``env.json``, ``metrics.jsonl`` (a line an epoch, the last line is the final one),
    ``checkpoints/``, ``predictions.safetensors``, ``audit.json``, ``report.html``.

    >>> run = RunDirectory(Path("runs/not-yet"))
    >>> run.finished(), run.read_metrics()
    (False, [])
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.yaml"
        self.environment = path / "env.json"
        self.metrics = path / "metrics.jsonl"
        self.checkpoints = path / "checkpoints"
        self.last = self.checkpoints / "last.pt"
        self.initial = self.checkpoints / "initial.safetensors"
        self.model = self.checkpoints / "model.safetensors"
        self.predictions = path / "predictions.safetensors"
        self.audit = path / "audit.json"
        self.report = path / "report.html"
        self.failure = path / "failure.json"
        self._lock: BinaryIO | None = None

    def close(self) -> None:
        """Let other processes in."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def begin(self, config: TrainConfig, environment: dict[str, Any], *, overwrite: bool = False) -> None:
        """Take the directory for a run: other processes are kept out until :meth:`close`.

        Args:
            config: what is being run; what was begun here must be the same.
            environment: what it is run with.
            overwrite: remove a run that is there.

        Raises:
            ValueError: if the directory cannot be used, or holds a run with other settings.
        """
        self._open(overwrite=overwrite)
        if self.config.exists():
            self.check_same(config)
        else:
            with writing(self.config):
                atomic_write_text(self.environment, json.dumps(environment, indent=2) + "\n")
                write_config(config, self.config)

    def check_same(self, config: TrainConfig) -> None:
        """Refuse to go on with a run that was begun with other settings; ones that were not given agree with any."""
        stored, wanted = read_settings(self.config), config.to_dict()
        wanted["milestones"] = tuple(wanted["milestones"])
        given = [name for name in wanted if wanted[name] is not None and name not in _ELSEWHERE]
        other = [name for name in given if stored.get(name) != wanted[name]]
        if other:
            differences = ", ".join(f"{name} {stored.get(name)!r} there and {wanted[name]!r} here" for name in other)
            raise ValueError(
                f"{self.path} holds a run with other settings: {differences}. Name another --out, or start over in "
                "this one with --overwrite."
            )

    def stored_settings(self) -> dict[str, Any]:
        """The settings of the run that is here, in plain values; none if there is no run."""
        if not self.config.exists():
            return {}
        settings = read_settings(self.config)
        return settings | {"out": None, "milestones": list(settings["milestones"])}

    def finished(self) -> bool:
        """Whether the run that is here has ended."""
        lines = self.read_metrics()
        return bool(lines) and bool(lines[-1].get("final"))

    def read_metrics(self) -> list[dict[str, Any]]:
        """The lines of ``metrics.jsonl``; one that was cut off when a process was killed is left out."""
        if not self.metrics.exists():
            return []
        lines = []
        for text in self.metrics.read_text(encoding="utf-8").splitlines():
            try:
                lines.append(json.loads(text))
            except json.JSONDecodeError:
                break
        return lines

    def add_metrics(self, line: dict[str, Any]) -> None:
        """Append a line."""
        with writing(self.metrics), self.metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, allow_nan=False) + "\n")

    def keep_metrics(self, count: int) -> None:
        """Drop lines after the first ``count``: what a killed process wrote after its last checkpoint."""
        lines = self.read_metrics()[:count]
        atomic_write_text(self.metrics, "".join(json.dumps(line) + "\n" for line in lines))

    def _open(self, *, overwrite: bool) -> None:
        """Make the directory and keep other processes out of it; ``overwrite`` removes a run that is there."""
        if self.path.exists() and self._is_foreign(overwrite=overwrite):
            raise ValueError(f"{self.path} holds other files and no run; name an empty or a new directory.")
        try:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
            self._lock = (self.checkpoints / ".lock").open("wb")
        except OSError as error:
            raise ValueError(f"the run directory {self.path} cannot be written to: {error.strerror}.") from None
        try:
            import fcntl  # not on Windows, where there is no such lock

            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # let go by the system however the process ends
        except ImportError:
            pass
        except OSError:
            raise ValueError(f"another process is training in {self.path}; wait for it, or name another.") from None
        remove_leftovers(self.path)
        if overwrite:
            self._remove_run()

    def best(self, epoch: int) -> Path:
        """The weights of an epoch that was the best so far."""
        return self.checkpoints / f"best-epoch{epoch}.safetensors"

    def keep_best(self, epoch: int | None) -> None:
        """Remove the weights of epochs that are no longer the best; only when a checkpoint knows of the better one."""
        for file in self.checkpoints.glob("best-epoch*.safetensors"):
            if epoch is None or file != self.best(epoch):
                file.unlink()

    def _is_foreign(self, *, overwrite: bool) -> bool:
        """Whether someone else's files are here: many projects have a ``config.yaml``, and ``overwrite`` removes it."""
        if not self.path.is_dir():
            return True
        if self.config.exists():
            return overwrite and not self._holds_run()
        # A process that was killed while it wrote its first file leaves a hidden one behind.
        return any(
            each.name not in ("checkpoints", self.environment.name) and not each.name.endswith(".tmp")
            for each in self.path.iterdir()
        )

    def _holds_run(self) -> bool:
        """Whether the settings of a run are here beside what it was run with, or else a checkpoint of one."""
        try:
            return self.environment.exists() and "data" in read_settings(self.config)
        except ValueError:  # of another version, perhaps
            return self._has_checkpoint()

    def _has_checkpoint(self) -> bool:
        try:
            return self.last.exists() and bool(load_checkpoint(self.last))
        except ValueError:
            return False

    def _remove_run(self) -> None:
        files = (self.config, self.environment, self.metrics, self.predictions, self.audit, self.report, self.failure)
        for file in (*files, self.last, self.initial, self.model):
            file.unlink(missing_ok=True)
        self.keep_best(None)
        shutil.rmtree(self.path / "tensorboard", ignore_errors=True)
