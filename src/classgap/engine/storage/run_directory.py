"""The files of a run: their names, the lock on them, and the state they describe."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, BinaryIO

from classgap._atomic_write import atomic_write_text, remove_leftovers
from classgap._text_checksums import CHECKSUMS, check_text, renew_checksum, update_checksum
from classgap.engine.config import TrainConfig, parse_settings, read_settings, write_config
from classgap.engine.errors import RunLockedError
from classgap.engine.storage.checkpoint import load_checkpoint
from classgap.engine.storage.disk import explain_write_errors
from classgap.engine.storage.fingerprint import changes, write_fingerprint

# Settings that do not change the result; a run may be resumed with other values.
_IRRELEVANT = ("out", "device", "save_every", "audit", "tensorboard")
_DEFAULTS = {field.name: None if field.default is MISSING else field.default for field in fields(TrainConfig)}


class RunDirectory:
    """Directory of one run, finished or not.

    Files: ``config.yaml``, ``env.json``, ``data.json`` (a fingerprint of the data), ``metrics.jsonl`` (one line per
    epoch, then the final one), ``class_stats.jsonl`` (one line per epoch, if configured), ``checkpoints/``,
    ``preprocessing.json``, ``predictions.safetensors``, ``val_predictions.safetensors`` and
    ``train_predictions.safetensors`` if there are any, ``audit.json``, ``report.html``, and ``checksums.json`` of the
    text files that are read back; others contain theirs.

    >>> run = RunDirectory(Path("runs/not-yet"))
    >>> run.finished(), run.read_metrics()
    (False, [])
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.yaml"
        self.environment = path / "env.json"
        self.data = path / "data.json"
        self.metrics = path / "metrics.jsonl"
        self.class_stats = path / "class_stats.jsonl"
        self.checkpoints = path / "checkpoints"
        self.last = self.checkpoints / "last.pt"
        self.previous = self.checkpoints / "previous.pt"
        self.damaged = self.checkpoints / "damaged.pt"
        self.initial = self.checkpoints / "initial.safetensors"
        self.model = self.checkpoints / "model.safetensors"
        self.preprocessing = path / "preprocessing.json"
        self.predictions = path / "predictions.safetensors"
        self.val_predictions = path / "val_predictions.safetensors"
        self.train_predictions = path / "train_predictions.safetensors"
        self.audit = path / "audit.json"
        self.report = path / "report.html"
        self.failure = path / "failure.json"
        self._lock: BinaryIO | None = None

    def close(self) -> None:
        """Release the lock on the directory."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def begin(
        self,
        config: TrainConfig,
        environment: dict[str, Any],
        *,
        overwrite: bool = False,
        data: dict[str, Any] | None = None,
    ) -> None:
        """Create or reopen the directory of a run and lock it until :meth:`close`.

        Args:
            config: Configuration of the run; an existing run must have the same.
            environment: Versions and hardware, for ``env.json``, which describes the last process that trained the run.
            overwrite: Remove an existing run.
            data: Fingerprint of the data; a run must be resumed with the same.

        Raises:
            ValueError: If the directory cannot be used, or contains a run with other settings or data.
        """
        if self.path.exists() and self._is_foreign(overwrite=overwrite):
            raise ValueError(f"{self.path} contains files that are not a run; choose an empty or new directory.")
        self._lock_directory()
        if overwrite:
            self._remove_run()
        resumed = self.config.exists()
        if resumed:
            self.check_same(config)
            if data is not None:
                self._check_data(data)
        with explain_write_errors(self.config):
            with renew_checksum(self.environment):
                atomic_write_text(self.environment, json.dumps(environment, indent=2) + "\n")
            if resumed:  # a process may have been killed before it stored these
                update_checksum(self.config)
                if data is not None:
                    update_checksum(self.data)
            else:
                if data is not None:
                    with renew_checksum(self.data):
                        atomic_write_text(self.data, write_fingerprint(data))
                with renew_checksum(self.config):
                    write_config(config, self.config)

    def check_same(self, config: TrainConfig) -> None:
        """Reject a configuration that differs from the stored one; ``None`` matches any value.

        Raises:
            ValueError: With the settings that differ.
        """
        check_text(self.config)
        stored, current = read_settings(self.config), parse_settings(config.to_dict())
        # A run stored before a setting existed was trained as by the setting's default.
        stored = _DEFAULTS | stored
        given = [name for name in current if current[name] is not None and name not in _IRRELEVANT]
        differences = [
            f"{name} (stored {stored[name]!r}, now {current[name]!r})"
            for name in given
            if stored[name] != current[name]
        ]
        if differences:
            raise ValueError(
                f"{self.path} contains a run with other settings: {', '.join(differences)}. Choose another --out, or "
                "replace the run with --overwrite."
            )

    def _check_data(self, data: dict[str, Any]) -> None:
        """Reject data that changed since the run began. Runs of earlier versions stored no fingerprint."""
        check_text(self.data)
        try:
            stored = json.loads(self.data.read_text(encoding="utf-8")) if self.data.exists() else {}
            if not isinstance(stored, dict):
                raise ValueError("not an object")
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{self.data} is damaged ({error}); start over with --overwrite.") from None
        if different := changes(stored, data):
            raise ValueError(
                f"the data of {self.path} changed since the run began: {', '.join(different)}. Restore the data, or "
                "start over with --overwrite."
            )

    def stored_settings(self) -> dict[str, Any]:
        """Return the settings of the stored run, except ``out``: it may have been moved. Empty if there is no run."""
        check_text(self.config)
        settings = read_settings(self.config) if self.config.exists() else {}
        return {name: value for name, value in settings.items() if name != "out"}

    def finished(self) -> bool:
        """Return whether the run is complete."""
        lines = self.read_metrics()
        return bool(lines) and bool(lines[-1].get("final"))

    def read_metrics(self) -> list[dict[str, Any]]:
        """Read the lines of ``metrics.jsonl``, except one that a killed process left incomplete."""
        return _read_lines(self.metrics)

    def read_class_stats(self) -> list[dict[str, Any]]:
        """Read the lines of ``class_stats.jsonl``: stage, epoch, and lists with an entry per class."""
        return _read_lines(self.class_stats)

    def add_metrics(self, line: dict[str, Any]) -> None:
        """Append a line to ``metrics.jsonl``."""
        _add_line(self.metrics, line)

    def add_class_stats(self, line: dict[str, Any]) -> None:
        """Append a line to ``class_stats.jsonl``."""
        _add_line(self.class_stats, line)

    def update_checksums(self) -> None:
        """Store the checksums of the lines written so far; a checkpoint counts on them."""
        for path in (self.metrics, self.class_stats):
            with explain_write_errors(path):
                update_checksum(path)

    def keep_epochs(self, count: int) -> None:
        """Keep the lines of the first ``count`` epochs; later ones were written after the last checkpoint."""
        lines = self.read_metrics()[:count]
        _write_lines(self.metrics, lines)
        if self.class_stats.exists():
            kept = [(line.get("stage"), line.get("epoch")) for line in lines]
            found = [line for line in self.read_class_stats() if (line.get("stage"), line.get("epoch")) in kept]
            _write_lines(self.class_stats, found)

    def _lock_directory(self) -> None:
        """Create the directory and lock it against other processes."""
        try:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
            self._lock = (self.checkpoints / ".lock").open("wb")
        except OSError as error:
            raise ValueError(f"cannot write to the run directory {self.path}: {error.strerror}.") from None
        try:
            import fcntl  # not available on Windows

            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # released by the system however the process ends
        except ImportError:
            pass
        except OSError:
            raise RunLockedError(
                f"another process is training in {self.path}; wait for it or choose another --out."
            ) from None
        remove_leftovers(self.path)

    def best(self, epoch: int) -> Path:
        """Return the path of the weights of a best epoch."""
        return self.checkpoints / f"best-epoch{epoch}.safetensors"

    def keep_best(self, *epochs: int) -> None:
        """Remove the weights of other epochs, once the checkpoints refer to these."""
        kept = [self.best(epoch) for epoch in epochs]
        for file in self.checkpoints.glob("best-epoch*.safetensors"):
            if file not in kept:
                file.unlink()

    def _is_foreign(self, *, overwrite: bool) -> bool:
        """Return whether the directory contains other files; many projects have a ``config.yaml`` of their own."""
        if not self.path.is_dir():
            return True
        if self.config.exists():
            return overwrite and not self._holds_run()
        # A process that was killed while writing its first file leaves a temporary one.
        return any(
            each.name not in ("checkpoints", self.environment.name, self.data.name, CHECKSUMS)
            and not each.name.endswith(".tmp")
            for each in self.path.iterdir()
        )

    def _holds_run(self) -> bool:
        """Return whether the directory contains a run: its settings and environment, or a checkpoint."""
        try:
            return self.environment.exists() and "data" in read_settings(self.config)
        except ValueError:  # perhaps written by another version
            return self._has_checkpoint()

    def _has_checkpoint(self) -> bool:
        for path in (self.last, self.previous):
            try:
                if path.exists() and load_checkpoint(path):
                    return True
            except ValueError:
                continue
        return False

    def _remove_run(self) -> None:
        records = (self.config, self.environment, self.data, self.preprocessing, self.metrics, self.class_stats)
        files = (*records, self.audit, self.report, self.failure, self.path / CHECKSUMS)
        predictions = (self.predictions, self.val_predictions, self.train_predictions)
        for file in (*files, *predictions, self.last, self.previous, self.damaged, self.initial, self.model):
            file.unlink(missing_ok=True)
        self.keep_best()
        shutil.rmtree(self.path / "tensorboard", ignore_errors=True)


def _read_lines(path: Path) -> list[dict[str, Any]]:
    """Read a file with one JSON object per line, except a last line that a killed process left incomplete."""
    check_text(path)
    if not path.exists():
        return []
    lines = []
    texts = path.read_text(encoding="utf-8", errors="replace").split("\n")
    for number, text in enumerate(texts, start=1):
        try:
            line = json.loads(text)
            if not isinstance(line, dict):
                raise ValueError("not an object")
            lines.append(line)
        except (ValueError, RecursionError) as error:
            if number == len(texts):  # after the last complete line
                break
            raise ValueError(
                f"line {number} of {path} is damaged ({error}); delete the line, or start over with --overwrite."
            ) from None
    return lines


def _write_lines(path: Path, lines: list[dict[str, Any]]) -> None:
    with renew_checksum(path):
        atomic_write_text(path, "".join(json.dumps(line) + "\n" for line in lines))


def _add_line(path: Path, line: dict[str, Any]) -> None:
    with explain_write_errors(path), path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, allow_nan=False) + "\n")
        file.flush()
        os.fsync(file.fileno())  # a checkpoint that counts this line is on disk before long
