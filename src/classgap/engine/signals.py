"""Stop requests by signal: the run saves and ends after the current step."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class StopRequest:
    """Record SIGTERM and the first Ctrl-C while active; a second Ctrl-C interrupts at once.

    Attributes:
        name: Name of the signal received; "" if none.

    >>> with StopRequest() as stop:
    ...     signal.raise_signal(signal.SIGTERM)
    ...     stop.name
    'SIGTERM'
    """

    def __init__(self) -> None:
        self.name = ""
        self._before: dict[signal.Signals, Any] = {}

    def poll(self) -> None:
        """Look for other reasons to stop; called after each step and each epoch. Subclasses set ``name`` to stop."""

    def __enter__(self) -> StopRequest:
        if threading.current_thread() is not threading.main_thread():
            return self  # Python delivers signals to the main thread only
        for number in (signal.SIGTERM, signal.SIGINT):
            self._before[number] = signal.signal(number, self._record)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _record(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and self.name:
            raise KeyboardInterrupt
        self.name = signal.Signals(number).name
