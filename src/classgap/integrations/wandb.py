"""Weights & Biases: audits as metrics, tables, images and artifacts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from classgap.integrations._audit_images import Pixels


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

    def log_image(self, name: str, image: Pixels, step: int | None) -> None:
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
