"""The examples of the trackers run, and their audits can be read back."""

from pathlib import Path

import pytest

import classgap as cg
from scripts import load_script


def test_both_trackers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    for name in ("WANDB_CACHE_DIR", "WANDB_DATA_DIR", "WANDB_CONFIG_DIR", "WANDB_ARTIFACT_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    load_script("examples/log_audit.py").main(["--to", "tensorboard", "wandb", "--epochs", "2", "--out", str(tmp_path)])
    first, second = (cg.Audit.load(tmp_path / "tensorboard" / "test" / step / "audit.json") for step in ("1", "2"))
    assert second.overall.accuracy > first.overall.accuracy
    assert len(list((tmp_path / "wandb").rglob("*.table.json"))) == 2


def test_mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    mlflow = pytest.importorskip("mlflow")
    from mlflow.models.evaluation.evaluator_registry import _model_evaluation_registry

    from classgap.integrations.mlflow_evaluator import ClassGapEvaluator

    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    _model_evaluation_registry.register("classgap", ClassGapEvaluator)  # also if only the sources are on the path
    load_script("examples/log_audit.py").main(["--to", "mlflow", "--epochs", "1", "--out", str(tmp_path)])
    (run,) = mlflow.search_runs(experiment_names=["classgap"], output_format="list")
    assert run.data.metrics["test/accuracy"] > 0.5
    load_script("examples/mlflow_evaluate.py").main(["--out", str(tmp_path)])
    assert "classgap/hard_accuracy 0." in capsys.readouterr().out
    with pytest.raises(mlflow.exceptions.MlflowException, match="worst_class_accuracy"):
        load_script("examples/mlflow_evaluate.py").main(["--out", str(tmp_path), "--worst-class", "0.999"])
