"""Hugging Face ``Trainer``: a per-class audit at every evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import nn

from classgap.audit import Audit
from classgap.audit.io.inference import id2label_names
from classgap.integrations._audit_metrics import audit_metrics, write_audit

try:
    from transformers import EvalPrediction, TrainerCallback
except ImportError as error:
    raise ImportError("classgap.integrations.huggingface requires transformers: pip install 'classgap[hf]'.") from error


class AuditCallback(TrainerCallback):
    """Audits every evaluation and prediction of a ``Trainer``, class by class.

    Pass it twice: ``Trainer(…, callbacks=[audit], compute_metrics=audit.compute_metrics)``. The metrics appear in the
    logs as ``eval_hard_accuracy``, ``eval_worst_class_accuracy``, …; ``metric_for_best_model="hard_accuracy"`` works.
    Each evaluation writes ``audit.json`` and ``report.html`` to ``output_dir/eval``, each ``predict`` to
    ``output_dir/test``. With several processes, ``Trainer`` drops the repeated samples that give all processes the
    same number.

    Args:
        class_names: Names of the classes; ``id2label`` of the model by default.
        settings: Other keyword arguments of ``Audit.from_predictions``: ``train_counts``, ``rank_by``, ``groups``, ….

    Attributes:
        audit: The last audit.

    >>> import numpy as np
    >>> from transformers import EvalPrediction
    >>> audit = AuditCallback(class_names=["cat", "dog"])
    >>> logits = np.array([[2.0, 0.0], [1.0, 0.0], [0.0, 1.0], [3.0, 0.0]])
    >>> audit.compute_metrics(EvalPrediction(logits, np.array([0, 0, 1, 1])))["worst_class_accuracy"]
    0.5
    """

    def __init__(self, *, class_names: Sequence[str] | None = None, **settings: Any) -> None:
        self.class_names = class_names
        self.settings = settings
        self.audit: Audit | None = None
        self._model: nn.Module | None = None

    def compute_metrics(self, prediction: EvalPrediction) -> dict[str, float]:
        """Audit the predictions and return the main metrics."""
        logits, targets = prediction.predictions, prediction.label_ids
        logits = logits[0] if isinstance(logits, tuple) else logits
        names = self.class_names
        if names is None and self._model is not None:
            names = id2label_names(self._model, logits.shape[1])
        labeled = targets != -100  # as in Trainer, such samples have no label
        self.audit = Audit.from_predictions(logits[labeled], targets[labeled], class_names=names, **self.settings)
        return audit_metrics(self.audit)

    def on_init_end(self, args: Any, state: Any, control: Any, model: nn.Module | None = None, **kwargs: Any) -> None:
        """Remember the model, for its class names."""
        self._model = model

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Write the audit of an evaluation."""
        self._write(args, state, kwargs["metrics"])

    def on_predict(self, args: Any, state: Any, control: Any, metrics: dict[str, float], **kwargs: Any) -> None:
        """Write the audit of a prediction."""
        self._write(args, state, metrics)

    def _write(self, args: Any, state: Any, metrics: dict[str, float]) -> None:
        prefixes = [name.removesuffix("_balanced_accuracy") for name in metrics if name.endswith("_balanced_accuracy")]
        if self.audit is None or not prefixes:
            raise ValueError("AuditCallback saw no predictions: pass compute_metrics=audit.compute_metrics to Trainer.")
        if state.is_world_process_zero:
            write_audit(self.audit, Path(args.output_dir, prefixes[0]))
