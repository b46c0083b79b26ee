"""What one sees of a training: a bar with rate and remaining time in a terminal, a few lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from classgap.distributed import rank

REFRESH = 0.1  # seconds between two updates of the bar
LINES = 10  # printed over a stage where there is no terminal
SHOWN = {"loss": "loss {:.3f}", "train_accuracy": "train {:.1%}", "val_accuracy": "validation {:.1%}"}


class Display:
    """Shows a run's progress on standard error, on process 0 only.

    Args:
        title: what is being trained.
        total: samples that the stage uses.
        done: of them before this process began.
        quiet: show nothing.
    """

    def __init__(self, title: str, total: int, done: int = 0, *, quiet: bool = False) -> None:
        self._console = Console(stderr=True, quiet=quiet or rank() > 0)
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.fields[figures]}"),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task(title, total=total, completed=done, rate="", figures="")
        self._title, self._total, self._done, self._pending = title, total, done, 0
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
        """Samples a second since this process began."""
        return (self._done - self._at_start) / max(1e-9, time.monotonic() - self._began)

    def advance(self, samples: int) -> None:
        """So many samples more were used."""
        self._done += samples
        now = time.monotonic()
        if now - self._shown >= REFRESH and not self._bar.disable:
            self._shown = now
            self._bar.update(self._task, completed=self._done, rate=f"{self.rate:,.0f}/s")

    def epoch(self, number: int, epochs: int, metrics: dict[str, Any]) -> None:
        """An epoch ended with these figures; without a terminal, lines at tenths and the end of a stage tell them."""
        figures = ", ".join(form.format(metrics[name]) for name, form in SHOWN.items() if name in metrics)
        if not self._bar.disable:
            self._bar.update(self._task, figures=figures)
        elif LINES * self._done // max(1, self._total) > self._lines or number == epochs:
            self._lines = LINES * self._done // max(1, self._total)
            left = (self._total - self._done) / max(1e-9, self.rate)
            self._console.print(
                f"{self._title}: epoch {number} of {epochs}, {figures}, {self.rate:,.0f} samples a second, "
                f"{left:,.0f} s left",
                highlight=False,
                markup=False,
                soft_wrap=True,
            )
