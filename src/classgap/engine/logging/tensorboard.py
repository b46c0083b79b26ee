"""Metrics for TensorBoard."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def require_tensorboard() -> None:
    """See that the package is there.

    Raises:
        ValueError: with the command that installs it.
    """
    try:
        import torch.utils.tensorboard  # noqa: F401
    except ImportError:
        raise ValueError("tensorboard needs a package: pip install 'classgap[tensorboard]'.") from None


class Scalars:
    """Writes numbers to ``RUN/tensorboard``, if switched on."""

    def __init__(self, run: Path, *, on: bool, done: int = 0) -> None:
        self._writer: Any = None
        if on:
            from torch.utils.tensorboard import SummaryWriter

            # What a killed process wrote of later epochs is not shown.
            self._writer = SummaryWriter(run / "tensorboard", purge_step=done + 1)

    def add(self, metrics: dict[str, Any], epoch: int) -> None:
        """One epoch's figures."""
        if self._writer is None:
            return
        for name, value in metrics.items():
            if isinstance(value, float):
                self._writer.add_scalar(name, value, epoch)

    def __enter__(self) -> Scalars:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._writer is not None:
            self._writer.close()
