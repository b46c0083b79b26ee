"""Metrics for TensorBoard."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class Scalars:
    """Writes numbers to ``RUN/tensorboard``, if switched on."""

    def __init__(self, run: Path, *, on: bool) -> None:
        self._writer: Any = None
        if on:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError:
                raise ValueError("tensorboard needs a package: pip install 'classgap[tensorboard]'.") from None
            self._writer = SummaryWriter(run / "tensorboard")

    def add(self, metrics: dict[str, Any], epoch: int) -> None:
        """One epoch's figures."""
        if self._writer is None:
            return
        for name, value in metrics.items():
            if isinstance(value, float):
                self._writer.add_scalar(name, value, epoch)

    def close(self) -> None:
        """Write what is left."""
        if self._writer is not None:
            self._writer.close()
