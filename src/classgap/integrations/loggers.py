"""Log audits to experiment trackers: TensorBoard, Weights & Biases, MLflow, or any object with four methods."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from classgap.audit import Audit
from classgap.audit.figures import FIGURES, column_names, column_values
from classgap.integrations._audit_images import Pixels, accuracy_image, confusion_image
from classgap.integrations._audit_metrics import audit_metrics
from classgap.integrations.mlflow import MlflowAuditLogger
from classgap.integrations.tensorboard import TensorBoardAuditLogger
from classgap.integrations.wandb import WandbAuditLogger


@runtime_checkable
class AuditLogger(Protocol):
    """Methods that :func:`log_audit` calls, in this order. Implement them for other trackers.

    >>> class Printer:
    ...     def log_metrics(self, metrics, step):
    ...         print(metrics["val/worst_class_accuracy"])
    ...
    ...     def log_table(self, name, columns, rows, step):
    ...         print(name, len(rows))
    ...
    ...     def log_image(self, name, image, step):
    ...         print(name, image.shape[2])
    ...
    ...     def log_files(self, name, files, step):
    ...         print(sorted(file.name for file in files))
    >>> isinstance(Printer(), AuditLogger)
    True
    """

    def log_metrics(self, metrics: Mapping[str, float], step: int | None) -> None:
        """Log numbers by name."""
        ...

    def log_table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], step: int | None) -> None:
        """Log a table with one row per class; unknown values are ``None``."""
        ...

    def log_image(self, name: str, image: Pixels, step: int | None) -> None:
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
        logger: a ``torch.utils.tensorboard.SummaryWriter``, a Weights & Biases run (``wandb.init()``), an MLflow
            run (``mlflow.start_run()``), a Lightning logger of one of these, or an :class:`AuditLogger`.
        step: step or epoch. W&B drops values of steps before its current one, and completes a step when the next one
            begins or the run finishes.
        name: prefix of all names, such as "val" or "test".

    Raises:
        ValueError: if the logger is of an unknown kind.

    >>> from classgap.audit import Audit
    >>> audit = Audit.from_predictions(predictions=[0, 0, 1, 0], targets=[0, 0, 1, 1], class_names=["cat", "dog"])
    >>> from tempfile import TemporaryDirectory
    >>> from torch.utils.tensorboard import SummaryWriter
    >>> with TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
    ...     log_audit(audit, writer, step=3, name="val")
    ...     sorted(file.name for file in (Path(folder) / "val" / "3").iterdir())
    ['audit.json', 'report.html']
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


def _as_audit_logger(logger: Any) -> AuditLogger:
    if isinstance(logger, AuditLogger):
        return logger
    if hasattr(getattr(logger, "info", None), "run_id"):  # mlflow.start_run(), or a run of MlflowClient
        return MlflowAuditLogger(logger.info.run_id)
    for found in (logger, getattr(logger, "experiment", None)):  # Lightning's loggers
        if all(hasattr(found, method) for method in ("add_scalar", "add_text", "add_image", "get_logdir")):
            return TensorBoardAuditLogger(found)
        if all(hasattr(found, method) for method in ("log", "log_artifact", "id")):
            return WandbAuditLogger(found)
        if all(hasattr(found, method) for method in ("log_batch", "log_artifact")) and hasattr(logger, "run_id"):
            return MlflowAuditLogger(logger.run_id, found)
    raise ValueError(
        "logger must be a SummaryWriter, a W&B run, an MLflow run, a Lightning logger of one of these, or have the "
        f"methods of AuditLogger; got {type(logger).__name__}."
    )
