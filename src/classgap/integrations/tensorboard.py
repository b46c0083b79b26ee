"""TensorBoard: audits as scalars, text and images, with the report page next to the events."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from classgap.integrations._audit_images import Pixels


class TensorBoardAuditLogger:
    """Log to a ``SummaryWriter``. Files are stored next to its events: ``LOG_DIR/NAME/STEP/report.html``."""

    def __init__(self, writer: Any) -> None:
        self.writer = writer

    def log_metrics(self, metrics: Mapping[str, float], step: int | None) -> None:
        """Log scalars."""
        for name, value in metrics.items():
            self.writer.add_scalar(name, value, step)

    def log_table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], step: int | None) -> None:
        """Log the table as Markdown text."""
        lines = [list(columns), ["---"] * len(columns), *([_markdown(cell) for cell in row] for row in rows)]
        self.writer.add_text(name, "\n".join(f"| {' | '.join(line)} |" for line in lines), step)

    def log_image(self, name: str, image: Pixels, step: int | None) -> None:
        """Log an image."""
        self.writer.add_image(name, image, step, dataformats="HWC")

    def log_files(self, name: str, files: Sequence[Path], step: int | None) -> None:
        """Copy the files into the log directory."""
        folder = Path(self.writer.get_logdir()) / name / ("" if step is None else str(step))
        folder.mkdir(parents=True, exist_ok=True)
        for file in files:
            shutil.copy(file, folder / file.name)
        self.writer.add_text(f"{name}/files", ", ".join(str(folder / file.name) for file in files), step)
        self.writer.flush()


def _markdown(cell: Any) -> str:
    text = "" if cell is None else f"{cell:.4g}" if isinstance(cell, float) else str(cell)
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
