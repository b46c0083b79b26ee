"""Metrics for TensorBoard."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def require_tensorboard() -> None:
    """Check that the tensorboard package is installed.

    Raises:
        ValueError: With the command that installs it.
    """
    try:
        import torch.utils.tensorboard  # noqa: F401
    except ImportError:
        raise ValueError("tensorboard is not installed; run pip install 'classgap[tensorboard]'.") from None


class TensorBoardLogger:
    """Write the metrics of each epoch to ``RUN/tensorboard``, if enabled.

    Args:
        run: The run directory.
        enabled: Whether to write anything.
        epochs_done: Completed epochs; events that a killed process wrote for later ones are hidden.
    """

    def __init__(self, run: Path, *, enabled: bool, epochs_done: int = 0) -> None:
        self._writer: Any = None
        if enabled:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(run / "tensorboard", purge_step=epochs_done + 1)

    def add(self, metrics: dict[str, Any], epoch: int) -> None:
        """Add the metrics of an epoch."""
        if self._writer is None:
            return
        for name, value in metrics.items():
            if isinstance(value, float):
                self._writer.add_scalar(name, value, epoch)

    def __enter__(self) -> TensorBoardLogger:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._writer is not None:
            self._writer.close()
