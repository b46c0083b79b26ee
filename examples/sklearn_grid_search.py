"""Choose a loss by the accuracy of the hard classes, with scikit-learn's ``GridSearchCV``.

    python examples/sklearn_grid_search.py                       # digits with rare classes, a minute
    python examples/sklearn_grid_search.py --methods erm mr2 --alphas 1 10

The hard third is that of a baseline's out-of-fold predictions, so all candidates are scored on the same classes.
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import classgap as cg
from classgap.integrations.sklearn import GapClassifier, class_accuracies, hard_third_score

NAMES = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])


def load() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return training and test samples; odd digits keep a tenth of their training samples."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
    kept = (y % 2 == 0) | (np.arange(len(y)) % 10 == 0)
    return X[kept], X_test, NAMES[y[kept]], NAMES[y_test]


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=["erm", "mr2", "logit-adjustment", "mr2+logit-adjustment"])
    parser.add_argument("--alphas", nargs="+", type=float, default=[0.1, 1.0, 10.0])
    parser.add_argument("--model", choices=["linear", "mlp"], default="linear")
    options = parser.parse_args(words)
    X, X_test, y, y_test = load()

    baseline = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    rank_by = class_accuracies(y, cross_val_predict(baseline, X, y, cv=3))
    candidates = make_pipeline(StandardScaler(), GapClassifier(model=options.model, max_iter=500, random_state=0))
    search = GridSearchCV(
        candidates,
        {"gapclassifier__method": options.methods, "gapclassifier__alpha": options.alphas},
        scoring=make_scorer(hard_third_score, rank_by=rank_by),
        cv=3,
    ).fit(X, y)
    print("chosen:", search.best_params_)

    models = {"LogisticRegression": baseline.fit(X, y), "GapClassifier": search.best_estimator_}
    for name, model in models.items():
        audit = cg.Audit.from_predictions(
            probabilities=model.predict_proba(X_test), targets=y_test, class_names=model.classes_, name=name
        )
        hard = hard_third_score(y_test, model.predict(X_test), rank_by=rank_by)
        print(f"{name}: accuracy {audit.overall.accuracy:.3f}, hard third {hard:.3f}, worst {audit.gap.worst_name}")


if __name__ == "__main__":
    main()
