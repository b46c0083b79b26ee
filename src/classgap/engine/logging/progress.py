"""Training progress: a bar with throughput and remaining time in a terminal, a few lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from classgap.distributed import rank

REFRESH = 0.1  # seconds between updates of the bar
LINES = 10  # lines printed per stage without a terminal
# Factor and format of each metric.
SHOWN = {
    "loss": (1, "loss {:.3f}"),
    "train_accuracy": (100, "train {:.1f} %"),
    "val_accuracy": (100, "validation {:.1f} %"),
}


class Display:
    """Show the progress of a stage on standard error, on process 0 only.

    Args:
        title: Title of the run.
        total: Number of samples that the stage processes.
        done: Number of samples processed before a resume.
        quiet: Show nothing.
    """

    def __init__(self, title: str, total: int, done: int = 0, *, quiet: bool = False) -> None:
        self._console = Console(stderr=True, quiet=quiet or rank() > 0)
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.fields[metrics]}"),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task(title, total=total, completed=done, rate="", metrics="")
        self._title, self._total, self._done = title, total, done
        self._at_start, self._began = done, time.monotonic()
        self._shown = self._began
        self._lines = LINES * done // max(1, total)

    def __enter__(self) -> Display:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    @property
    def rate(self) -> float:
        """Samples per second since the start of this process."""
        return (self._done - self._at_start) / max(1e-9, time.monotonic() - self._began)

    def advance(self, samples: int) -> None:
        """Count processed samples."""
        self._done += samples
        now = time.monotonic()
        if now - self._shown >= REFRESH and not self._bar.disable:
            self._shown = now
            self._bar.update(self._task, completed=self._done, rate=f"{self.rate:,.0f}/s")

    def epoch(self, number: int, epochs: int, values: dict[str, Any]) -> None:
        """Show the metrics of an epoch; without a terminal, print a line at each tenth and at the end of the stage."""
        metrics = ", ".join(
            form.format(factor * values[name]) for name, (factor, form) in SHOWN.items() if name in values
        )
        if not self._bar.disable:
            self._bar.update(self._task, metrics=metrics)
        elif LINES * self._done // max(1, self._total) > self._lines or number == epochs:
            self._lines = LINES * self._done // max(1, self._total)
            left = (self._total - self._done) / max(1e-9, self.rate)
            self._console.print(
                f"{self._title}: epoch {number} of {epochs}, {metrics}, {self.rate:,.0f} samples/s, {left:,.0f} s left",
                highlight=False,
                markup=False,
                soft_wrap=True,
            )
