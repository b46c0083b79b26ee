"""GapClassifier against LogisticRegression and optimality conditions in NumPy, and in searches and pipelines."""

import pickle
import subprocess
import sys
from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from classgap import methods
from classgap.integrations.sklearn import GapClassifier, hard_third_score, hard_third_scorer

WORDS = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])


@cache
def digits():
    """Digits in [0, 1]; odd digits keep a fifth of their samples."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X / 16, y, test_size=0.5, stratify=y, random_state=0)
    kept = (y % 2 == 0) | (np.random.default_rng(0).random(len(y)) < 0.2)
    return X[kept], X_test, y[kept], y_test


def weights_of(y):
    return np.random.default_rng(1).integers(0, 4, len(y)).astype(float)


def softmax(scores):
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("classes", [2, 10])
def test_cross_entropy_is_logistic_regression(classes, weighted):
    X, X_test, y, _ = digits()
    X, y = X[y < classes], y[y < classes]
    weight = weights_of(y) if weighted else None
    ours = GapClassifier("erm", alpha=4.0, tol=1e-7, max_iter=2000).fit(X, y, sample_weight=weight)
    # Two rows of weights share the penalty that a single row of twice their size bears alone.
    C = 1 / 4.0 if classes > 2 else 2 / 4.0
    theirs = LogisticRegression(C=C, tol=1e-7, max_iter=2000).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(ours.predict_proba(X_test), theirs.predict_proba(X_test), atol=1e-4)
    np.testing.assert_array_equal(ours.predict(X_test), theirs.predict(X_test))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("method", ["mr2", "mr2:margin=2:p=1", "logit-adjustment", "elm", "mr2+logit-adjustment"])
def test_the_gradient_of_the_objective_vanishes(method, weighted):
    """Margins and priors are computed here from the formulas of the papers."""
    X, _, y, _ = digits()
    weight = weights_of(y) if weighted else np.ones(len(y))
    model = GapClassifier(method, alpha=2.0, tol=1e-7, max_iter=2000)
    model.fit(X, y, sample_weight=weight if weighted else None)
    W, b = (each.detach().numpy() for each in model.model_[-1].parameters())
    margin, p = (2.0, 1) if "margin=2" in method else (1.0, 2)
    gamma, prior = np.ones(len(y)), np.zeros(10)
    if "mr2" in method:
        sizes = np.linalg.norm(X, ord=p, axis=1) ** 2
        root = np.cbrt([np.average(sizes[y == k], weights=weight[y == k]) for k in range(10)])
        gamma = (margin * root / root.mean())[y]
    if "logit-adjustment" in method or method == "elm":
        prior = np.log(np.bincount(y, weights=weight) / weight.sum())
    error = softmax((X @ W.T + b + prior) / gamma[:, None]) - np.eye(10)[y]
    error *= (weight / gamma / weight.sum())[:, None]
    np.testing.assert_allclose(error.T @ X + 2.0 * W / weight.sum(), 0, atol=1e-6)
    np.testing.assert_allclose(error.sum(axis=0), 0, atol=1e-6)


def plain_losses():
    """Names of the methods that only replace the loss."""
    given = {"num_classes": 10, "class_counts": [9] * 10, "feature_dim": 64, "num_samples": 90}
    names = [name for name in methods.names() if methods.METHODS.entry(name).role == "loss"]
    return [name for name in names if type(methods.build(name, **given)).__name__ in ("Method", "Focal")]


@pytest.mark.filterwarnings("ignore:L-BFGS did not converge")
@pytest.mark.parametrize("model", ["linear", "mlp"])
@pytest.mark.parametrize("method", plain_losses())
def test_every_loss_trains(method, model):
    X, X_test, y, y_test = digits()
    estimator = GapClassifier(method, model=model, hidden_layer_sizes=(64,), alpha=0.1, max_iter=20, tol=1e-2)
    estimator.set_params(learning_rate_init=0.03, random_state=0).fit(X, y, sample_weight=np.ones(len(y)))
    assert estimator.score(X_test, y_test) > 0.75  # odd digits are rare
    probabilities = estimator.predict_proba(X_test)
    np.testing.assert_allclose(probabilities, softmax(estimator.decision_function(X_test)), atol=1e-9)
    np.testing.assert_allclose(np.log(probabilities), estimator.predict_log_proba(X_test), atol=1e-6)


def test_there_are_many_losses():
    assert {"erm", "mr2", "elm", "lmdl", "focal", "group-dro", "center", "triplet"} <= set(plain_losses())


def test_a_perceptron_separates_what_a_line_cannot():
    X, y = make_moons(600, noise=0.1, random_state=0)
    models = (GapClassifier(model=model, alpha=0.1, random_state=0) for model in ("linear", "mlp"))
    linear, deep = (model.fit(X[:300], y[:300]) for model in models)
    assert linear.score(X[300:], y[300:]) < 0.93 < 0.97 < deep.score(X[300:], y[300:])
    assert deep.decision_function(X).shape == (600,)
    two = GapClassifier(model="mlp", hidden_layer_sizes=[8, 4], max_iter=1).fit(X, y)
    assert [tuple(layer.weight.shape) for layer in two.model_ if hasattr(layer, "weight")] == [(8, 2), (4, 8), (2, 4)]
    full = GapClassifier("erm", model="mlp", solver="lbfgs", hidden_layer_sizes=(16,), random_state=0)
    assert full.set_params(max_iter=500).fit(X[:300], y[:300]).score(X[300:], y[300:]) > 0.97


def test_rare_classes_gain_by_logit_adjustment():
    X, X_test, y, y_test = digits()
    plain, adjusted = (GapClassifier(name, max_iter=500).fit(X, y) for name in ("erm", "logit-adjustment"))
    rare = y_test % 2 == 1
    assert adjusted.score(X_test[rare], y_test[rare]) > plain.score(X_test[rare], y_test[rare]) + 0.02


def test_string_labels_and_pandas():
    X, X_test, y, y_test = digits()
    columns = [f"pixel {i}" for i in range(64)]
    frame, labels = pd.DataFrame(X, columns=columns), pd.Series(WORDS[y], index=np.arange(len(y)) + 7)
    named = GapClassifier(tol=1e-6, max_iter=2000).fit(frame, labels)
    plain = GapClassifier(tol=1e-6, max_iter=2000).fit(X, y)
    assert named.classes_.tolist() == sorted(WORDS)
    assert named.feature_names_in_.tolist() == columns
    assert np.mean(named.predict(pd.DataFrame(X_test, columns=columns)) == WORDS[plain.predict(X_test)]) > 0.999
    assert named.score(pd.DataFrame(X_test, columns=columns), WORDS[y_test]) > 0.9


@pytest.mark.parametrize("model", ["linear", "mlp"])
def test_clone_pickle_and_seeds(model):
    X, X_test, y, _ = digits()
    before = torch.random.get_rng_state()
    first = GapClassifier(model=model, max_iter=20, batch_size=100, random_state=3, tol=1e-2).fit(X, y)
    assert torch.equal(torch.random.get_rng_state(), before)
    loaded = pickle.loads(pickle.dumps(first))
    again = clone(first).fit(X, y)
    for other in (loaded, again):
        np.testing.assert_array_equal(other.predict_proba(X_test), first.predict_proba(X_test))
    assert first.n_iter_ == 20 or model == "linear"
    other = clone(first).set_params(random_state=4).fit(X, y)
    assert np.array_equal(other.predict_proba(X_test), first.predict_proba(X_test)) == (model == "linear")


def test_samples_of_weight_zero_are_left_out_of_mini_batches():
    X, X_test, y, _ = digits()
    weight = (np.random.default_rng(0).random(len(y)) < 0.7).astype(float)
    model = GapClassifier(model="mlp", hidden_layer_sizes=(16,), max_iter=3, random_state=0)
    weighted = clone(model).fit(X, y, sample_weight=weight)
    removed = clone(model).fit(X[weight > 0], y[weight > 0])
    np.testing.assert_allclose(weighted.predict_proba(X_test), removed.predict_proba(X_test), rtol=1e-6)


def test_grid_search_over_methods_in_a_pipeline():
    X, X_test, y, y_test = digits()
    model = make_pipeline(StandardScaler(), GapClassifier(max_iter=300, tol=1e-3))
    grid = {"gapclassifier__method": ["erm", "mr2", "logit-adjustment"], "gapclassifier__alpha": [1.0, 100.0]}
    search = GridSearchCV(model, grid, scoring=hard_third_scorer, cv=3).fit(X, WORDS[y])
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    assert search.best_params_["gapclassifier__alpha"] in (1.0, 100.0)
    assert len(set(search.cv_results_["mean_test_score"].tolist())) > 1
    best = search.predict(X_test)
    assert search.score(X_test, WORDS[y_test]) == hard_third_score(WORDS[y_test], best)


@pytest.mark.parametrize(("samples", "epochs"), [(40, 100), (6400, 60), (40_000, 20)])
def test_the_number_of_epochs_follows_the_number_of_samples(samples, epochs):
    X = np.random.default_rng(0).normal(size=(samples, 2))
    model = GapClassifier("group-dro", random_state=0).fit(X, X[:, 0] > 0)
    assert model.n_iter_ == epochs


def test_float32_stays_float32():
    X, X_test, y, _ = digits()
    single = GapClassifier(max_iter=500).fit(X.astype(np.float32), y)
    assert single.predict_proba(X_test.astype(np.float32)).dtype == np.float32
    assert np.mean(single.predict(X_test) == GapClassifier(max_iter=500).fit(X, y).predict(X_test)) > 0.99


def test_too_few_iterations_warn():
    X, _, y, _ = digits()
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        assert GapClassifier(max_iter=2).fit(X, y).n_iter_ == 2


@pytest.mark.parametrize(
    ("settings", "fact"),
    [
        ({"method": "mr3"}, "mr3"),
        ({"method": "sam+mr2"}, "classgap train"),
        ({"method": "crt"}, "'crt'"),
        ({"method": "mr2:margin=-1"}, "margin"),
        ({"model": "resnet"}, "resnet"),
        ({"solver": "sgd"}, "sgd"),
        ({"model": "mlp", "solver": "lbfgs"}, "adam"),
        ({"method": "group-dro", "solver": "lbfgs"}, "group-dro"),
        ({"method": "eql", "solver": "lbfgs"}, "random"),
        ({"hidden_layer_sizes": 100}, "hidden_layer_sizes"),
        ({"hidden_layer_sizes": ()}, "hidden_layer_sizes"),
        ({"alpha": -1}, "alpha"),
        ({"max_iter": 0}, "max_iter"),
        ({"tol": 0.0}, "tol"),
        ({"batch_size": "big"}, "big"),
        ({"learning_rate_init": float("nan")}, "learning_rate_init"),
    ],
)
def test_invalid_arguments(settings, fact):
    X, _, y, _ = digits()
    model = GapClassifier(**settings)
    with pytest.raises(ValueError, match=fact):
        model.fit(X, y)
    assert not hasattr(model, "model_")


def test_invalid_weights_and_labels():
    X, _, y, _ = digits()
    with pytest.raises(ValueError, match="sample_weight"):
        GapClassifier().fit(X, y, sample_weight=-np.ones(len(y)))
    with pytest.raises(ValueError, match="1 class"):
        GapClassifier().fit(X, y, sample_weight=(y == 3).astype(float))


def test_divergence_is_an_error():
    X, _, y, _ = digits()
    model = GapClassifier(model="mlp", hidden_layer_sizes=(8,), learning_rate_init=1e200, max_iter=2)
    with pytest.raises(FloatingPointError, match="learning_rate_init"):
        model.fit(X, y)
    assert not hasattr(model, "model_")


def test_importing_integrations_imports_no_library():
    code = "import sys, classgap.integrations; print({'sklearn', 'wandb', 'torch'} & set(sys.modules))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "set()"
