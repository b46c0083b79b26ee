"""The files of a search: its settings, its journal, its trials, and the session that runs it."""

from __future__ import annotations

import json
import math
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from classgap._atomic_write import atomic_write_text
from classgap.audit.serialization import read_json


class SearchDirectory:
    """Directory of one search, finished or not.

    Files: ``search.json`` (settings), ``journal.log`` (Optuna's record of all trials), ``session.json`` (the process
    that runs the search, and the time spent), ``trials/NNN/`` (a run directory each), ``folds/NNN-F/`` and
    ``refits/NNN/`` (runs of the best trials that hold out other samples, or none) and ``attempts/NNN`` (how often a
    trial was started).

    >>> SearchDirectory(Path("runs/digits-fix")).run(3).as_posix()
    'runs/digits-fix/trials/003'
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.settings = path / "search.json"
        self.journal = path / "journal.log"
        self.session = path / "session.json"
        self.trials = path / "trials"
        self.attempts = path / "attempts"
        self.token = ""
        self.seconds = 0.0

    def run(self, number: int) -> Path:
        """Return the run directory of a trial."""
        return self.trials / f"{number:03d}"

    @contextmanager
    def open(self, settings: Mapping[str, Any]) -> Iterator[None]:
        """Create or reopen the directory for one process; workers of an earlier one stop.

        Raises:
            ValueError: If the directory cannot be used, or contains a search with other settings.
        """
        self._check(settings)
        try:
            self.trials.mkdir(parents=True, exist_ok=True)
            self.attempts.mkdir(exist_ok=True)
            lock = (self.path / ".lock").open("wb")
        except OSError as error:
            raise ValueError(f"cannot write to the directory {self.path}: {error.strerror}.") from None
        with lock:
            self._lock(lock.fileno())
            self._repair_journal()
            if not self.settings.exists():
                atomic_write_text(self.settings, json.dumps(dict(settings), indent=2) + "\n")
            if self.session.exists():
                self.seconds = _read_seconds(self.session)
            self.begin_session()
            try:
                yield
            finally:
                self.end_session()

    def begin_session(self) -> None:
        """Let trials run that are started from now on; those of an earlier session stop."""
        self.token = secrets.token_hex(8)
        self.save_session()

    def save_session(self) -> None:
        """Write the time spent; trials run while the file contains the token of their search."""
        atomic_write_text(self.session, json.dumps({"token": self.token, "seconds": round(self.seconds, 2)}) + "\n")

    def end_session(self) -> None:
        """Make all running trials save and stop."""
        self.token = ""
        self.save_session()

    def _check(self, settings: Mapping[str, Any]) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"{self.path} is not a directory; choose another --study-dir.")
        if not self.settings.exists():
            known = {each.name for each in (self.journal, self.session, self.trials, self.attempts)} | {".lock"}
            foreign = [each.name for each in self.path.glob("*") if each.name not in known]
            if foreign:
                raise ValueError(
                    f"{self.path} has files that are not a search ({foreign[0]}); choose another --study-dir."
                )
            return
        stored = read_json(self.settings)
        if not isinstance(stored, dict):
            raise ValueError(f"{self.settings} must contain settings by name; choose another --study-dir.")
        differences = [
            f"{name} (stored {stored.get(name)!r}, now {value!r})"
            for name, value in settings.items()
            if stored.get(name) != value
        ]
        if differences:
            raise ValueError(
                f"{self.path} has a search with other settings: {', '.join(differences)}. Choose another --study-dir."
            )

    def _lock(self, file: int) -> None:
        try:
            import fcntl  # not available on Windows

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # released by the system however the process ends
        except ImportError:
            pass
        except OSError:
            raise ValueError(
                f"another process is searching in {self.path}; wait for it, or choose another --study-dir."
            ) from None

    def _repair_journal(self) -> None:
        """Remove what a killed process left: its lock on the journal, and a line that it did not complete."""
        for leftover in self.path.glob(f"{self.journal.name}.lock*"):
            leftover.unlink()
        if self.journal.exists():
            content = self.journal.read_bytes()
            complete = content.rfind(b"\n") + 1
            if complete < len(content):
                os.truncate(self.journal, complete)


def _read_seconds(session: Path) -> float:
    content = read_json(session)
    seconds = content.get("seconds", 0.0) if isinstance(content, dict) else None
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 <= seconds < math.inf:
        raise ValueError(
            f"{session} is damaged: seconds must be a number, at least 0. Delete it to start the time anew."
        )
    return float(seconds)
