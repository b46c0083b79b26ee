"""MLflow: the evaluator "classgap" of ``mlflow.models.evaluate``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from classgap.audit import Audit
from classgap.integrations._audit_metrics import audit_metrics
from classgap.integrations.loggers import log_audit
from classgap.integrations.mlflow import MlflowAuditLogger

# Other settings belong to other evaluators: MLflow passes one dictionary to all.
SETTINGS = ("class_names", "train_counts", "rank_by", "groups")


class ClassGapEvaluator:
    """Evaluator "classgap" of ``mlflow.models.evaluate(…, model_type="classifier", evaluators="classgap")``.

    It logs the audit to the run, as ``log_audit`` does, and returns its main metrics: scalars such as
    ``classgap/hard_accuracy``, for which ``mlflow.validate_evaluation_results`` takes thresholds.

    The audit uses probabilities if the model has ``predict_proba``, scores if its predictions have a column per class
    or ``score_columns`` names such columns of the data, and predicted labels otherwise. ``evaluator_config`` may have:

    - ``class_names``, ``train_counts``, ``rank_by``, ``groups``: as in ``Audit.from_predictions``;
    - ``score_columns``: columns of the data with the scores of each class, in the order of ``class_names``;
    - ``name``: prefix of all names, "classgap" by default.
    """

    # A subclass of mlflow.models.ModelEvaluator would need MLflow at import; MLflow only calls these two methods.
    @classmethod
    def can_evaluate(cls, *, model_type: str, evaluator_config: Mapping[str, Any] | None = None, **kwargs: Any) -> bool:
        """Return whether the model is a classifier."""
        return model_type == "classifier"

    def evaluate(
        self,
        *,
        dataset: Any,
        run_id: str,
        evaluator_config: Mapping[str, Any] | None = None,
        model: Any = None,
        predictions: str | None = None,
        **kwargs: Any,
    ) -> Any:
        """Audit the predictions and return an ``mlflow.models.EvaluationResult``.

        Args:
            dataset: MLflow's dataset, with labels.
            run_id: Run to log to.
            evaluator_config: Settings; see the class.
            model: A pyfunc model, or ``None`` if the data contain the predictions.
            predictions: Column of the predictions, if the model returns several.
            kwargs: Other arguments of MLflow, which are not used.

        Raises:
            ValueError: If labels and predictions do not fit each other.
        """
        try:
            from mlflow.models import EvaluationResult
            from mlflow.models.evaluation.artifacts import JsonEvaluationArtifact
        except ImportError:
            raise ImportError("mlflow is not installed; run pip install 'classgap[mlflow]'.") from None

        config = dict(evaluator_config or {})
        scores = _scores(model, dataset, predictions, config.get("score_columns"))
        settings = scores | {key: config[key] for key in SETTINGS if key in config}
        # As strings, labels are names wherever the classes are numbers that do not count from 0.
        audit = Audit.from_predictions(targets=np.asarray(dataset.labels_data).astype(str), **settings)
        name, logger = config.get("name", "classgap"), MlflowAuditLogger(run_id)
        log_audit(audit, logger, name=name)
        file = f"{name}/audit.json"
        uri = f"{logger.client.get_run(run_id).info.artifact_uri}/{file}"
        return EvaluationResult(
            metrics={f"{name}/{key}": value for key, value in audit_metrics(audit).items()},
            artifacts={file: JsonEvaluationArtifact(uri=uri, content=audit.to_dict())},
            run_id=run_id,
        )


def _scores(model: Any, dataset: Any, column: str | None, score_columns: Sequence[str] | None) -> dict[str, Any]:
    """Return probabilities, scores or predicted labels as arguments of ``Audit.from_predictions``."""
    if model is None:
        if score_columns is not None:
            return {"logits": dataset.features_data[list(score_columns)]}
        return {"predictions": np.asarray(dataset.predictions_data).astype(str)}
    raw: Any = model.get_raw_model() if hasattr(model, "get_raw_model") else None
    if hasattr(raw, "predict_proba") and hasattr(raw, "classes_"):
        probabilities_NK = raw.predict_proba(dataset.features_data)
        return {"probabilities": probabilities_NK, "class_names": [str(each) for each in raw.classes_]}
    output = model.predict(dataset.features_data)
    output = output[column] if column is not None and hasattr(output, "columns") else output
    array = np.asarray(output)
    return {"logits": output} if array.ndim == 2 and array.shape[1] > 1 else {"predictions": array.ravel().astype(str)}
