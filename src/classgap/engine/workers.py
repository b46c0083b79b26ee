"""Runs in worker processes: they stop when the process that started them ends."""

from __future__ import annotations

import time
from functools import lru_cache
from pathlib import Path
from types import TracebackType

from classgap.audit.serialization import read_json
from classgap.data.dataset import Dataset
from classgap.engine.config import TrainConfig
from classgap.engine.errors import RunLockedError
from classgap.engine.signals import StopRequest
from classgap.engine.train import load_dataset, train

POLL_SECONDS = 0.25
LOCK_SECONDS = 60.0  # a worker of a killed process stops after its current step


class SessionStop(StopRequest):
    """Stop a run when the process that started it ends; signals are left to that process.

    Args:
        session: JSON file that contains the token while the process runs.
        token: Token of the process.
        owner: Name of the process in messages.
    """

    def __init__(self, session: Path, token: str, owner: str) -> None:
        super().__init__()
        self._session, self._token, self._owner = session, token, owner
        self._polled = -POLL_SECONDS

    def __enter__(self) -> SessionStop:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def poll(self) -> None:
        """Check whether the token is still valid."""
        now = time.monotonic()
        if not self.name and now - self._polled >= POLL_SECONDS:
            self._polled = now
            if not self._is_running():
                self.name = self._owner

    def _is_running(self) -> bool:
        if not self._session.exists():
            return False
        try:
            return bool(read_json(self._session).get("token") == self._token)
        except (OSError, ValueError):  # being replaced, on a file system without atomic renames
            return True


def train_in_worker(config: TrainConfig, token: str, stop: StopRequest) -> None:
    """Train; wait for a worker of an earlier process that is still in the run directory.

    Args:
        config: Settings of the run.
        token: Token of the process that started the run; its runs share the loaded data.
        stop: Reasons to stop.
    """
    data = _load(config.data, token)
    limit = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            train(config, data=data, quiet=True, stop=stop)
            return
        except RunLockedError:
            if time.monotonic() > limit:
                raise
            time.sleep(POLL_SECONDS)


@lru_cache(maxsize=1)
def _load(text: str, token: str) -> Dataset:
    """Load the data once per process that starts runs: files may change before the next one."""
    return load_dataset(text)
