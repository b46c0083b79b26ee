"""Audit a classifier with ``mlflow.models.evaluate`` and reject it if its worst class is too weak.

python examples/mlflow_evaluate.py                    # mlflow ui --backend-store-uri sqlite:///runs/mlflow/mlflow.db
python examples/mlflow_evaluate.py --worst-class 0.99 # ends with an error
"""

from __future__ import annotations

import argparse
from pathlib import Path

import mlflow
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worst-class", type=float, default=0.5, help="lowest accuracy that a class may have")
    parser.add_argument("--out", type=Path, default=Path("runs/mlflow"))
    options = parser.parse_args(words)
    options.out.mkdir(parents=True, exist_ok=True)
    mlflow.set_tracking_uri(f"sqlite:///{options.out.resolve() / 'mlflow.db'}")
    if mlflow.get_experiment_by_name("digits") is None:
        mlflow.create_experiment("digits", (options.out.resolve() / "artifacts").as_uri())
    mlflow.set_experiment("digits")

    x, y = load_digits(return_X_y=True, as_frame=True)
    x_train, x_test, y_train, y_test = train_test_split(x, y, stratify=y, random_state=0)
    model = LogisticRegression(max_iter=20).fit(x_train, y_train)
    data = pd.DataFrame(model.predict_proba(x_test), columns=[str(name) for name in model.classes_])
    data["target"], data["prediction"] = y_test.to_numpy(), model.predict(x_test)
    with mlflow.start_run():
        result = mlflow.models.evaluate(
            data=data,
            targets="target",
            predictions="prediction",
            model_type="classifier",
            evaluators="classgap",  # found by its entry point; there is nothing to import
            evaluator_config={"score_columns": [str(name) for name in model.classes_]},
        )
    for name, value in result.metrics.items():
        print(f"{name} {value:.3f}")
    threshold = mlflow.models.MetricThreshold(threshold=options.worst_class, greater_is_better=True)
    mlflow.validate_evaluation_results({"classgap/worst_class_accuracy": threshold}, result)


if __name__ == "__main__":
    main()
