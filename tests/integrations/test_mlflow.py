"""Audits in MLflow with a database and files of its own, read back with MLflow."""

import json
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

import classgap as cg
from classgap.integrations.loggers import log_audit

mlflow = pytest.importorskip("mlflow")
pd = pytest.importorskip("pandas")

NAMES = ["cat", "dog", "fox"]
ENTRY = EntryPoint(
    "classgap", "classgap.integrations.mlflow_evaluator:ClassGapEvaluator", "mlflow.model_evaluator"
)  # tests/test_wheel.py checks that it is declared


@pytest.fixture(scope="module", autouse=True)
def _store(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Use one database for all tests: MLflow takes seconds to create it."""
    from mlflow.models.evaluation.evaluator_registry import _model_evaluation_registry

    folder = tmp_path_factory.mktemp("mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{folder / 'mlflow.db'}")
    mlflow.set_experiment(experiment_id=mlflow.create_experiment("audits", (folder / "artifacts").as_uri()))
    _model_evaluation_registry.register(ENTRY.name, ENTRY.load())


@pytest.fixture(scope="module")
def scores() -> tuple[np.ndarray, np.ndarray]:
    targets = np.arange(90) % 3
    return 1.5 * np.eye(3)[targets] + np.random.default_rng(0).normal(size=(90, 3)) * [1, 1, 2], targets


@pytest.fixture(scope="module")
def audit(scores: tuple[np.ndarray, np.ndarray]) -> cg.Audit:
    return cg.Audit.from_predictions(*scores, class_names=NAMES)


def artifacts_of(run_id: str, folder: str) -> set[str]:
    return {Path(each.path).name for each in mlflow.MlflowClient().list_artifacts(run_id, folder) if not each.is_dir}


def test_metrics_tables_images_and_files(audit: cg.Audit) -> None:
    with mlflow.start_run() as run:
        for step in (1, 2):
            log_audit(audit, run, step=step, name="val")
    history = mlflow.MlflowClient().get_metric_history(run.info.run_id, "val/hard_accuracy")
    assert [each.step for each in history] == [1, 2]
    assert history[0].value == audit.groups["hard"].accuracy
    expected = {"classes.json", "accuracy_by_class.png", "confusions.png", "audit.json", "report.html"}
    for step in (1, 2):
        assert artifacts_of(run.info.run_id, f"val/{step}") == expected
    folder = Path(mlflow.artifacts.download_artifacts(run_id=run.info.run_id, artifact_path="val/2"))
    assert cg.Audit.load(folder / "audit.json").gap == audit.gap
    table = mlflow.load_table("val/2/classes.json", run_ids=[run.info.run_id])
    assert table["name"].tolist() == NAMES
    assert table["accuracy"].tolist() == pytest.approx([each.accuracy for each in audit.classes])


def test_logging_again_replaces_the_table(audit: cg.Audit) -> None:
    """``mlflow.log_table`` itself appends."""
    with mlflow.start_run() as run:
        for _ in range(2):
            mlflow.log_table({"name": NAMES}, "appended.json")
            log_audit(audit, run, name="test")
    assert len(mlflow.load_table("appended.json", run_ids=[run.info.run_id])) == 6
    assert len(mlflow.load_table("test/classes.json", run_ids=[run.info.run_id])) == 3


def test_the_list_of_tables_does_not_grow_with_the_steps(audit: cg.Audit) -> None:
    from classgap.integrations.mlflow import TABLES, MlflowAuditLogger

    with mlflow.start_run() as run:
        logger = MlflowAuditLogger(run.info.run_id)
        for name in ("val/classes", "test/classes"):
            for step in (None, 1, 2):
                logger.log_table(name, ["name"], [["cat"]], step)
    tags = mlflow.get_run(run.info.run_id).data.tags
    assert [each["path"] for each in json.loads(tags[TABLES])] == ["val/2/classes.json", "test/2/classes.json"]


def test_the_logger_of_lightning(audit: cg.Audit) -> None:
    loggers = pytest.importorskip("lightning.pytorch.loggers")
    if not loggers.mlflow._MLFLOW_AVAILABLE:
        pytest.skip("Lightning needs the distribution mlflow or mlflow-skinny")
    logger = loggers.MLFlowLogger("audits", tracking_uri=mlflow.get_tracking_uri())
    log_audit(audit, logger, step=3, name="val")
    assert mlflow.get_run(logger.run_id).data.metrics["val/accuracy"] == audit.overall.accuracy


def test_predictions_in_the_data(audit: cg.Audit, scores: tuple[np.ndarray, np.ndarray]) -> None:
    logits, targets = scores
    labels = np.array(NAMES)
    frame = pd.DataFrame({"target": labels[targets], "prediction": labels[logits.argmax(1)]})
    with mlflow.start_run():
        result = mlflow.models.evaluate(
            data=frame, targets="target", predictions="prediction", model_type="classifier", evaluators="classgap"
        )
    assert result.metrics["classgap/hard_accuracy"] == audit.groups["hard"].accuracy
    assert result.artifacts["classgap/audit.json"].content["gap"]["worst_name"] == audit.gap.worst_name


def test_scores_in_the_data_and_thresholds(audit: cg.Audit, scores: tuple[np.ndarray, np.ndarray]) -> None:
    logits, targets = scores
    frame = pd.DataFrame(logits, columns=NAMES).assign(target=np.array(NAMES)[targets], prediction="cat")
    config = {"score_columns": NAMES, "name": "scores", "log_model_explainability": False}  # another evaluator's
    with mlflow.start_run() as run:
        result = mlflow.models.evaluate(
            data=frame,
            targets="target",
            predictions="prediction",
            model_type="classifier",
            evaluators="classgap",
            evaluator_config=config,
        )
    stored = json.loads(json.dumps(result.artifacts["scores/audit.json"].content))
    assert stored["overall"] == json.loads(json.dumps(audit.to_dict()))["overall"]  # with margins and calibration
    assert artifacts_of(run.info.run_id, "scores") >= {"report.html", "classes.json"}
    assert all(isinstance(value, float) for value in result.metrics.values())  # MetricThreshold takes scalars only
    worst = result.metrics["scores/worst_class_accuracy"]
    for threshold, passes in ((worst - 0.01, True), (worst + 0.01, False)):
        wanted = mlflow.models.MetricThreshold(threshold=threshold, greater_is_better=True)
        check = {"validation_thresholds": {"scores/worst_class_accuracy": wanted}, "candidate_result": result}
        if passes:
            mlflow.validate_evaluation_results(**check)
        else:
            with pytest.raises(mlflow.exceptions.MlflowException, match="worst_class_accuracy"):
                mlflow.validate_evaluation_results(**check)


def test_models(scores: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    """A scikit-learn model gives probabilities; a function gives scores."""
    import mlflow.sklearn
    from sklearn.linear_model import LogisticRegression

    logits, targets = scores
    frame = pd.DataFrame(logits, columns=NAMES).assign(target=targets + 1)  # the classes 1, 2 and 3
    model = LogisticRegression().fit(frame[NAMES], frame["target"])
    mlflow.sklearn.save_model(model, tmp_path / "model", serialization_format="cloudpickle")
    setting = {"targets": "target", "model_type": "classifier", "evaluators": "classgap"}
    with mlflow.start_run():
        result = mlflow.models.evaluate(str(tmp_path / "model"), frame, **setting)
    expected = cg.Audit.from_predictions(probabilities=model.predict_proba(frame[NAMES]), targets=targets)
    content = result.artifacts["classgap/audit.json"].content
    assert [each["name"] for each in content["classes"]] == ["1", "2", "3"]
    assert content["overall"] == json.loads(json.dumps(expected.to_dict()))["overall"]
    with mlflow.start_run():
        result = mlflow.models.evaluate(
            lambda data: data.to_numpy(),
            frame.assign(target=targets),
            **setting,
            evaluator_config={"class_names": NAMES},
        )
    content = result.artifacts["classgap/audit.json"].content
    assert (
        content["gap"] == json.loads(json.dumps(cg.Audit.from_predictions(*scores, class_names=NAMES).to_dict()))["gap"]
    )
