"""Log audits to experiment trackers: TensorBoard, Weights & Biases, or any object with four methods."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from classgap.audit import Audit
from classgap.audit.figures import FIGURES, column_names, column_values
from classgap.integrations._audit_images import accuracy_image, confusion_image
from classgap.integrations._audit_metrics import audit_metrics

Image = NDArray[np.uint8]


@runtime_checkable
class AuditLogger(Protocol):
    """Methods that :func:`log_audit` calls, in this order. Implement them for other trackers."""

    def log_metrics(self, metrics: Mapping[str, float], step: int | None) -> None:
        """Log numbers by name."""
        ...

    def log_table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], step: int | None) -> None:
        """Log a table with one row per class; unknown values are ``None``."""
        ...

    def log_image(self, name: str, image: Image, step: int | None) -> None:
        """Log an RGB image, (height, width, 3)."""
        ...

    def log_files(self, name: str, files: Sequence[Path], step: int | None) -> None:
        """Store files, which are deleted afterward. This call is the last one of an audit."""
        ...


def log_audit(audit: Audit, logger: Any, *, step: int | None = None, name: str = "audit") -> None:
    """Log metrics, the per-class table, figures and the report page of an audit.

    Metrics are the accuracies of the test set, the thirds and the worst class, and the gap. Figures are the accuracy of
    each class and the confusion matrix. Files are ``report.html`` and ``audit.json``, which ``classgap compare`` reads.

    Args:
        audit: the audit.
        logger: a ``torch.utils.tensorboard.SummaryWriter``, a Weights & Biases run (``wandb.init()``), a Lightning
            logger of either, or an :class:`AuditLogger`.
        step: step or epoch. W&B drops values of steps before its current one, and completes a step when the next one
            begins or the run finishes.
        name: prefix of all names, such as "val" or "test".

    Raises:
        ValueError: if the logger is of an unknown kind.
    """
    target = _as_audit_logger(logger)
    table = [column_values(FIGURES, entry) for entry in audit.classes]
    columns = [column for column in column_names(FIGURES) if any(row[column] not in (None, "") for row in table)]
    target.log_metrics({f"{name}/{key}": value for key, value in audit_metrics(audit).items()}, step)
    rows = [[None if row[column] == "" else row[column] for column in columns] for row in table]
    target.log_table(f"{name}/classes", columns, rows, step)
    target.log_image(f"{name}/accuracy_by_class", accuracy_image(audit), step)
    target.log_image(f"{name}/confusions", confusion_image(audit), step)
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / "audit.json", Path(folder) / "report.html"]
        audit.save(files[0])
        audit.to_html(files[1])
        target.log_files(name, files, step)


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

    def log_image(self, name: str, image: Image, step: int | None) -> None:
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


class WandbAuditLogger:
    """Log to a Weights & Biases run: everything in one step, and the files as an artifact of type "audit"."""

    def __init__(self, run: Any) -> None:
        try:
            import wandb
        except ImportError:
            raise ImportError("wandb is not installed; run pip install 'classgap[wandb]'.") from None
        self.run, self._wandb = run, wandb
        self._values: dict[str, Any] = {}  # one call of run.log is one step

    def log_metrics(self, metrics: Mapping[str, float], step: int | None) -> None:
        """Log numbers."""
        self._values |= metrics

    def log_table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], step: int | None) -> None:
        """Log a ``wandb.Table``."""
        self._values[name] = self._wandb.Table(columns=list(columns), data=[list(row) for row in rows])

    def log_image(self, name: str, image: Image, step: int | None) -> None:
        """Log a ``wandb.Image``."""
        self._values[name] = self._wandb.Image(image)

    def log_files(self, name: str, files: Sequence[Path], step: int | None) -> None:
        """Log pages as ``wandb.Html``, and all files as a new version of the artifact ``run-ID-NAME``."""
        for file in files:
            if file.suffix == ".html":
                self._values[f"{name}/{file.stem}"] = self._wandb.Html(file.read_text(encoding="utf-8"), inject=False)
        artifact = self._wandb.Artifact(f"run-{self.run.id}-{name}", type="audit", metadata={"step": step})
        for file in files:
            artifact.add_file(str(file))
        self.run.log(self._values, step=step)
        self.run.log_artifact(artifact)
        self._values = {}


def _as_audit_logger(logger: Any) -> AuditLogger:
    if isinstance(logger, AuditLogger):
        return logger
    for found in (logger, getattr(logger, "experiment", None)):  # Lightning's loggers
        if all(hasattr(found, method) for method in ("add_scalar", "add_text", "add_image", "get_logdir")):
            return TensorBoardAuditLogger(found)
        if all(hasattr(found, method) for method in ("log", "log_artifact", "id")):
            return WandbAuditLogger(found)
    raise ValueError(
        "logger must be a SummaryWriter, a W&B run, a Lightning logger of either, or have the methods of AuditLogger; "
        f"got {type(logger).__name__}."
    )


def _markdown(cell: Any) -> str:
    text = "" if cell is None else f"{cell:.4g}" if isinstance(cell, float) else str(cell)
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
