"""MLflow: audits as metrics and artifacts of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from classgap.integrations._audit_images import Pixels

TABLES = "mlflow.loggedArtifacts"  # the tag in which MLflow lists the tables of a run


class MlflowAuditLogger:
    """Log to an MLflow run. All but metrics are artifacts, in ``NAME/STEP/``, or ``NAME/`` without a step.

    Tables have the format of ``mlflow.log_table``, and ``mlflow.load_table`` reads the one of the last step. Logging a
    step again replaces its table, where ``mlflow.log_table`` would append the classes a second time.

    Args:
        run_id: ID of the run.
        client: An ``MlflowClient``; by default, one of the current tracking URI.
    """

    def __init__(self, run_id: str, client: Any = None) -> None:
        if client is None:
            try:
                from mlflow import MlflowClient
            except ImportError:
                raise ImportError("mlflow is not installed; run pip install 'classgap[mlflow]'.") from None
            client = MlflowClient()
        self.run_id, self.client = run_id, client

    def log_metrics(self, metrics: Mapping[str, float], step: int | None) -> None:
        """Log numbers."""
        for name, value in metrics.items():
            self.client.log_metric(self.run_id, name, value, step=step)

    def log_table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], step: int | None) -> None:
        """Write ``NAME.json`` and list it among the tables of the run."""
        path = _path(name, step, ".json")
        self.client.log_dict(self.run_id, {"columns": list(columns), "data": [list(row) for row in rows]}, path)
        listed = json.loads(self.client.get_run(self.run_id).data.tags.get(TABLES, "[]"))
        # One entry per name: with one per step, the tag would soon exceed the length that MLflow allows.
        others = [each for each in listed if _name(each["path"]) != name and each["path"] != path]
        self.client.set_tag(self.run_id, TABLES, json.dumps([*others, {"path": path, "type": "table"}]))

    def log_image(self, name: str, image: Pixels, step: int | None) -> None:
        """Write ``NAME.png``."""
        self.client.log_image(self.run_id, image, _path(name, step, ".png"))

    def log_files(self, name: str, files: Sequence[Path], step: int | None) -> None:
        """Store the files."""
        for file in files:
            self.client.log_artifact(self.run_id, str(file), str(PurePosixPath(_path(f"{name}/_", step)).parent))


def _path(name: str, step: int | None, suffix: str = "") -> str:
    """Return "val/12/classes.json" for "val/classes"."""
    path = PurePosixPath(name)
    return str(path.parent / ("" if step is None else str(step)) / f"{path.name}{suffix}")


def _name(path: str) -> str:
    """Return "val/classes" for "val/12/classes.json"."""
    folder, file = PurePosixPath(path).parent, PurePosixPath(path).stem
    return str((folder.parent if folder.name.isdigit() else folder) / file)
