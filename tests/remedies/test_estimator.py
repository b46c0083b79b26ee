"""ClassOffsetClassifierCV on real estimators and data, against rules written in NumPy."""

import pickle
import subprocess
import sys
from functools import cache

import joblib
import numpy as np
import pytest
import sklearn
from fix_cases import softmax
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import (
    GridSearchCV,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    train_test_split,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

import classgap as cg
from classgap.remedies import ClassOffsetClassifierCV


@parametrize_with_checks([ClassOffsetClassifierCV(LogisticRegression(C=1), cv=3)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.parametrize("base", [GaussianNB(), LinearSVC(), RandomForestClassifier(5, random_state=0)], ids=repr)
@pytest.mark.parametrize("goal", ["hard", "balanced"])
def test_scikit_learn_checks_of_other_estimators_and_goals(base, goal):
    check_estimator(ClassOffsetClassifierCV(base, goal=goal, max_easy_loss=100, max_overall_loss=100, cv=3))


@cache
def digits(seed=0):
    """Noisy digits; odd digits keep a fifth of their samples in the training half."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    X = X + rng.normal(size=X.shape) * 4
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=seed)
    kept = (y_train % 2 == 0) | (rng.random(len(y_train)) < 0.2)
    return X_train[kept], X_test, y_train[kept], y_test


BASES = {
    "logistic": LogisticRegression(C=0.01, max_iter=2000),
    "forest": RandomForestClassifier(50, random_state=0),
    "bayes": GaussianNB(),
    "svc": LinearSVC(C=0.01, random_state=0),
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression(C=0.1)),
}
FREE = {"max_easy_loss": 100, "max_overall_loss": 100, "max_medium_loss": 100}


def balanced_accuracy(y, predicted):
    return np.mean([np.mean(predicted[y == k] == k) for k in np.unique(y)])


@pytest.mark.parametrize("base", BASES.values(), ids=BASES)
def test_offsets_raise_balanced_accuracy_of_unseen_samples(base):
    X, X_test, y, y_test = digits()
    model = ClassOffsetClassifierCV(base, goal="balanced", **FREE, random_state=0).fit(X, y)
    before, after = (balanced_accuracy(y_test, each.predict(X_test)) for each in (model.estimator_, model))
    assert after > before + 0.02
    assert model.offsets_[1::2].mean() > model.offsets_[::2].mean()  # odd digits are rare
    alone = clone(base).fit(X, y)
    np.testing.assert_array_equal(model.estimator_.predict(X_test), alone.predict(X_test))


@pytest.mark.parametrize("base", BASES.values(), ids=BASES)
def test_predictions_are_the_argmax_of_scores_with_temperature_and_offsets(base):
    X, X_test, y, y_test = digits()
    model = ClassOffsetClassifierCV(base, goal="balanced", **FREE, random_state=0).fit(X, y)
    if hasattr(base, "predict_proba"):
        scores = np.log(np.maximum(model.estimator_.predict_proba(X_test), 1e-38))
    else:
        scores = model.estimator_.decision_function(X_test)
    adjusted = scores / model.temperature_ + model.offsets_
    np.testing.assert_array_equal(model.predict(X_test), adjusted.argmax(axis=1))
    np.testing.assert_array_equal(model.decision_function(X_test).argmax(axis=1), adjusted.argmax(axis=1))
    assert model.score(X_test, y_test) == np.mean(adjusted.argmax(axis=1) == y_test)
    assert hasattr(model, "predict_proba") == hasattr(base, "predict_proba")
    if hasattr(base, "predict_proba"):
        np.testing.assert_allclose(model.predict_proba(X_test), softmax(adjusted), atol=1e-7)
        np.testing.assert_allclose(np.exp(model.predict_log_proba(X_test)), softmax(adjusted), atol=1e-7)


@pytest.mark.parametrize("base", BASES.values(), ids=BASES)
def test_costs_give_the_lowest_expected_cost(base):
    X, X_test, y, y_test = digits()
    costs = np.random.default_rng(1).exponential(size=(10, 10)) * (1 - np.eye(10))
    costs[3] *= 20  # missing a 3 is expensive
    model = ClassOffsetClassifierCV(base, costs=costs, random_state=0).fit(X, y)
    if hasattr(base, "predict_proba"):
        scores = np.log(np.maximum(model.estimator_.predict_proba(X_test), 1e-38))
    else:
        scores = model.estimator_.decision_function(X_test)
    expected = softmax(scores / model.temperature_ + model.offsets_) @ costs
    np.testing.assert_array_equal(model.predict(X_test), expected.argmin(axis=1))
    np.testing.assert_allclose(model.decision_function(X_test), -expected, atol=1e-6)
    paid = {each: costs[y_test, each.predict(X_test)].mean() for each in (model, model.estimator_)}
    assert paid[model] < paid[model.estimator_]
    again = ClassOffsetClassifierCV(base, goal="cost", costs=costs, random_state=0).fit(X, y)
    np.testing.assert_array_equal(again.predict(X_test), model.predict(X_test))
    assert model.best_score_ == model.cv_results_["mean_test_score"].max()


@pytest.mark.parametrize("base", BASES.values(), ids=BASES)
def test_equal_costs_give_the_predictions_of_the_estimator(base):
    X, X_test, y, _ = digits()
    model = ClassOffsetClassifierCV(base, costs=3 * (1 - np.eye(10)), random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict(X_test), model.estimator_.predict(X_test))


def test_priors_apply_the_rule_of_bayes():
    X, X_test, y, _ = digits()
    priors = np.arange(1, 11) / 55
    none = {"max_easy_loss": 0, "max_overall_loss": 0, "goal": "worst"}
    X_easy, y_easy = X + 100 * np.eye(64)[y], y  # no errors: offsets cannot gain
    model = ClassOffsetClassifierCV(BASES["logistic"], priors=priors * 7, **none).fit(X_easy, y_easy)
    base = clone(BASES["logistic"]).fit(X_easy, y_easy)
    joint = base.predict_proba(X_test) * priors / (np.bincount(y) / len(y))
    posterior = joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X_test), posterior, atol=1e-8)
    np.testing.assert_array_equal(model.predict(X_test), posterior.argmax(axis=1))
    assert model.temperature_ == 1
    assert (base.predict(X_test) != posterior.argmax(axis=1)).any()


def test_uniform_priors_raise_balanced_accuracy():
    X, X_test, y, y_test = digits()
    model = ClassOffsetClassifierCV(BASES["forest"], priors=np.ones(10), random_state=0).fit(X, y)
    before, after = (balanced_accuracy(y_test, each.predict(X_test)) for each in (model.estimator_, model))
    assert after > before + 0.05


@pytest.mark.parametrize("base", BASES.values(), ids=BASES)
def test_without_a_gain_predictions_are_those_of_the_estimator(base):
    X, X_test, y, _ = digits()
    X_easy = X + 100 * np.eye(64)[y]
    model = ClassOffsetClassifierCV(base, random_state=0).fit(X_easy, y)
    assert model.best_score_ > 0.99
    np.testing.assert_array_equal(model.offsets_, 0)
    np.testing.assert_array_equal(model.predict(X_test), model.estimator_.predict(X_test))


def test_losses_on_unseen_samples_stay_within_the_limits():
    """Over seeds, the mean loss is below the limits, and hard classes of the base estimator gain."""
    losses, gains = [], []
    for seed in range(8):
        X, X_test, y, y_test = digits(seed)
        model = ClassOffsetClassifierCV(GaussianNB(), max_easy_loss=1, max_overall_loss=0.5, random_state=seed)
        model.fit(X, y)
        before, after = (model.estimator_.predict(X_test) == y_test, model.predict(X_test) == y_test)
        accuracy = np.array([np.mean(before[y_test == k]) for k in range(10)])
        change = np.array([np.mean(after[y_test == k]) for k in range(10)]) - accuracy
        losses.append(before.mean() - after.mean())
        gains.append(change[np.argsort(accuracy)[:3]].mean())
    assert np.mean(losses) < 0.005
    assert np.mean(gains) > 0.01


def test_cv_results_hold_every_candidate_and_best_score_is_one_of_them():
    X, _, y, _ = digits()
    model = ClassOffsetClassifierCV(BASES["logistic"], goal="balanced", **FREE, random_state=0).fit(X, y)
    results = model.cv_results_
    assert {len(column) for column in results.values()} == {len(results["params"])}
    assert {each["adjustment"] for each in results["params"]} == {None, "prior-correction", "class-offsets"}
    base = results["mean_test_score"][0]
    np.testing.assert_allclose(results["mean_test_score"] - base, results["mean_test_change"], atol=1e-12)
    assert model.best_score_ in results["mean_test_score"]
    assert base < model.best_score_ <= results["mean_test_score"].max()
    assert results["within_limits"].all()
    import pandas as pd

    assert len(pd.DataFrame(results)) == len(results["params"])


def test_limits_are_percentage_points():
    X, _, y, _ = digits()
    model = ClassOffsetClassifierCV(BASES["logistic"], goal="balanced", max_easy_loss=2, max_overall_loss=0.5)
    results = model.fit(X, y).cv_results_
    limits = {"easy": 0.02, "medium": 0.01, "overall": 0.005}  # medium: the default
    excess = np.any([results[f"change_{part}"] < -limit for part, limit in limits.items()], axis=0)
    np.testing.assert_array_equal(results["within_limits"], ~excess)
    assert 0 < excess.sum() < len(excess)


def test_string_labels_pandas_and_lists():
    import pandas as pd

    X, X_test, y, _ = digits()
    words = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
    model = ClassOffsetClassifierCV(BASES["logistic"], goal="balanced", **FREE, random_state=0)
    plain = clone(model).fit(X, y)
    columns = [f"pixel {i}" for i in range(64)]
    named = clone(model).fit(pd.DataFrame(X, columns=columns), pd.Series(words[y], index=np.arange(len(y)) + 7))
    assert named.feature_names_in_.tolist() == columns
    assert named.n_features_in_ == plain.n_features_in_ == 64
    assert named.classes_.tolist() == sorted(words)
    assert set(named.predict(pd.DataFrame(X_test, columns=columns))) <= set(words)
    # Alphabetic order changes folds and ties, but not the direction of the offsets.
    by_word = dict(zip(named.classes_, named.offsets_, strict=True))
    assert np.corrcoef([by_word[word] for word in words], plain.offsets_)[0, 1] > 0.95
    listed = clone(model).fit(X.tolist(), y.tolist())
    np.testing.assert_array_equal(listed.offsets_, plain.offsets_)


def test_class_weights_by_string_labels_reach_the_estimator():
    X, X_test, y, _ = digits()
    words = np.array(["even", "odd"])
    base = LogisticRegression(C=0.01, max_iter=2000, class_weight={"even": 1, "odd": 4})
    model = ClassOffsetClassifierCV(base, random_state=0).fit(X, words[y % 2])
    assert model.decision_function(X_test).shape == (len(X_test),)
    np.testing.assert_array_equal(words[(model.decision_function(X_test) > 0).astype(int)], model.predict(X_test))


@pytest.mark.parametrize("base", [GaussianNB(), LinearSVC(C=0.01)], ids=repr)
def test_binary_problems(base):
    X, X_test, y, y_test = digits()
    rare, rare_test = y == 9, y_test == 9
    model = ClassOffsetClassifierCV(base, goal="balanced", **FREE, random_state=0).fit(X, rare)
    assert model.offsets_.shape == (2,)
    before, after = (balanced_accuracy(rare_test, each.predict(X_test)) for each in (model.estimator_, model))
    assert after > before


def test_sparse_input():
    X, X_test, y, _ = digits()
    X, X_test = (np.round(np.maximum(part, 0)) for part in (X, X_test))
    model = ClassOffsetClassifierCV(BASES["logistic"], goal="balanced", **FREE, random_state=0)
    dense, thin = clone(model).fit(X, y), clone(model).fit(sparse.csr_matrix(X), y)
    assert np.mean(thin.predict(sparse.csr_matrix(X_test)) == dense.predict(X_test)) > 0.99


def test_prefit_uses_the_estimator_as_it_is():
    X, X_test, y, y_test = digits()
    base = clone(BASES["bayes"]).fit(X, y)
    X_fit, X_test, y_fit, y_test = train_test_split(X_test, y_test, stratify=y_test, random_state=0)
    settings = {"goal": "balanced", **FREE, "random_state": 0}
    model = ClassOffsetClassifierCV(base, cv="prefit", **settings).fit(X_fit, y_fit)
    assert model.estimator_ is base
    frozen = ClassOffsetClassifierCV(FrozenEstimator(base), cv="prefit", **settings).fit(X_fit, y_fit)
    np.testing.assert_array_equal(frozen.predict(X_test), model.predict(X_test))
    # A frozen estimator is not fitted by cross-validation either.
    folds = ClassOffsetClassifierCV(FrozenEstimator(base), cv=4, **settings).fit(X_fit, y_fit)
    np.testing.assert_array_equal(folds.estimator_.predict_proba(X_test), base.predict_proba(X_test))
    with pytest.raises(NotFittedError, match="prefit"):
        ClassOffsetClassifierCV(GaussianNB(), cv="prefit").fit(X_fit, y_fit)
    with pytest.raises(ValueError, match="77"):
        ClassOffsetClassifierCV(base, cv="prefit").fit(X_fit, np.where(y_fit == 0, 77, y_fit))


def test_prefit_classes_without_samples_keep_their_offsets_at_the_mean():
    X, X_test, y, y_test = digits()
    base = clone(BASES["bayes"]).fit(X, y)
    kept = y_test != 5
    model = ClassOffsetClassifierCV(base, cv="prefit", goal="balanced", **FREE, random_state=0)
    model.fit(X_test[kept], y_test[kept])
    assert model.classes_.tolist() == list(range(10))
    assert np.isfinite(model.offsets_).all()
    assert model.predict_proba(X_test).shape == (len(X_test), 10)


def test_cross_validation_strategies():
    X, _, y, _ = digits()
    model = ClassOffsetClassifierCV(GaussianNB(), goal="balanced", **FREE, random_state=0)
    folds = StratifiedKFold(4)
    by_splitter = clone(model).set_params(cv=folds).fit(X, y)
    for cv in (4, list(folds.split(X, y))):
        np.testing.assert_array_equal(clone(model).set_params(cv=cv).fit(X, y).offsets_, by_splitter.offsets_)
    with joblib.parallel_config(backend="threading"):
        parallel = clone(model).set_params(cv=4, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(parallel.offsets_, by_splitter.offsets_)
    single = clone(model).set_params(cv=0.4).fit(X, y)
    assert np.abs(single.offsets_).max() > 0
    np.testing.assert_array_equal(single.offsets_, clone(model).set_params(cv=0.4).fit(X, y).offsets_)
    with pytest.raises(ValueError, match="at most one test set"):
        clone(model).set_params(cv=RepeatedStratifiedKFold(n_splits=3, n_repeats=2)).fit(X, y)


def test_scores_are_out_of_fold():
    """A forest that memorizes its samples shows no errors in sample; out of fold, it shows them."""
    X, _, y, _ = digits()
    model = ClassOffsetClassifierCV(BASES["forest"], goal="balanced", random_state=0).fit(X, y)
    assert model.estimator_.score(X, y) == 1
    assert model.cv_results_["mean_test_score"][0] < 0.9


def test_a_class_missing_from_a_training_fold_has_probability_zero():
    X, _, y, _ = digits()
    few = np.r_[np.flatnonzero(y == 9)[:2], np.flatnonzero(y < 3)]
    X, y = X[few], y[few]
    rest = np.arange(len(y))
    halves = rest[2::2], rest[3::2]
    cv = [(halves[0], np.r_[rest[:2], halves[1]]), (np.r_[rest[:2], halves[1]], halves[0])]
    for base in (GaussianNB(), LinearSVC(C=0.01)):
        model = ClassOffsetClassifierCV(base, cv=cv, random_state=0).fit(X, y)
        assert model.classes_.tolist() == [0, 1, 2, 9]
        assert np.isfinite(model.offsets_).all()


def test_clone_pickle_and_search():
    X, X_test, y, _ = digits()
    model = ClassOffsetClassifierCV(GaussianNB(), goal="balanced", **FREE, random_state=0).fit(X, y)
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.predict_proba(X_test), model.predict_proba(X_test))
    again = clone(model).fit(X, y)
    np.testing.assert_array_equal(again.offsets_, model.offsets_)
    assert not hasattr(clone(model), "offsets_")
    search = GridSearchCV(model, {"estimator__var_smoothing": [1e-9, 0.1], "goal": ["hard", "balanced"]}, cv=2)
    assert search.fit(X, y).best_params_["goal"] in ("hard", "balanced")


def test_sample_weight_is_routed_to_the_estimator():
    X, X_test, y, _ = digits()
    weight = np.where(y % 2, 5.0, 1.0)
    settings = {"goal": "balanced", **FREE, "random_state": 0}
    plain = ClassOffsetClassifierCV(GaussianNB(), **settings)
    with pytest.raises(ValueError, match="sample_weight"):
        plain.fit(X, y, sample_weight=weight)
    with sklearn.config_context(enable_metadata_routing=True):
        model = ClassOffsetClassifierCV(GaussianNB().set_fit_request(sample_weight=True), **settings)
        model.fit(X, y, sample_weight=weight)
        unit = clone(model).fit(X, y, sample_weight=np.ones(len(y)))
    direct = GaussianNB().fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.estimator_.predict_proba(X_test), direct.predict_proba(X_test))
    # Fits on folds got weights too: otherwise both models would choose the same offsets.
    np.testing.assert_array_equal(unit.offsets_, plain.fit(X, y).offsets_)
    assert not np.array_equal(model.offsets_, unit.offsets_)


def test_tags_follow_the_estimator():
    assert sklearn.utils.get_tags(ClassOffsetClassifierCV(LogisticRegression())).input_tags.sparse
    assert not sklearn.utils.get_tags(ClassOffsetClassifierCV(GaussianNB())).input_tags.sparse
    assert sklearn.utils.get_tags(ClassOffsetClassifierCV(RandomForestClassifier())).input_tags.allow_nan
    assert not sklearn.utils.get_tags(ClassOffsetClassifierCV(GaussianNB())).input_tags.allow_nan
    assert sklearn.base.is_classifier(ClassOffsetClassifierCV(GaussianNB()))


@pytest.mark.parametrize(
    ("settings", "fact"),
    [
        ({"goal": "best"}, "best"),
        ({"goal": "cost"}, "costs"),
        ({"max_easy_loss": -1}, "max_easy_loss"),
        ({"max_overall_loss": 101}, "101"),
        ({"costs": np.ones((3, 3))}, r"\(10, 10\)"),
        ({"costs": -np.ones((10, 10))}, "-1"),
        ({"priors": np.ones(3)}, r"\(10,\)"),
        ({"priors": np.zeros(10)}, "positive"),
        ({"cv": 1.5}, "1.5"),
        ({"cv": "holdout"}, "holdout"),
        ({"estimator": SVC(decision_function_shape="ovo")}, "ovr"),
    ],
)
def test_invalid_arguments(settings, fact):
    X, _, y, _ = digits()
    model = ClassOffsetClassifierCV(**{"estimator": GaussianNB(), **settings})
    with pytest.raises(ValueError, match=fact):
        model.fit(X, y)
    assert not hasattr(model, "estimator_")
    assert not hasattr(model, "offsets_")


def test_invalid_samples():
    X, _, y, _ = digits()
    model = ClassOffsetClassifierCV(GaussianNB(), cv=2)
    with pytest.raises(ValueError, match="1 class"):
        model.fit(X[y == 0], y[y == 0])
    with pytest.raises(ValueError, match="multilabel"):
        model.fit(X, np.eye(10, dtype=int)[y])
    one = np.r_[np.flatnonzero(y < 2), np.flatnonzero(y == 7)[:1]]
    with pytest.warns(UserWarning, match="least populated"), pytest.raises(ValueError, match="'7' has 1 sample"):
        model.fit(X[one], y[one])
    with pytest.raises(ValueError, match="predict_proba or decision_function"):
        ClassOffsetClassifierCV(Ridge()).fit(X, y)
    assert ClassOffsetClassifierCV(RidgeClassifier(), random_state=0).fit(X, y).offsets_.shape == (10,)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_it_is_exported_lazily():
    assert cg.ClassOffsetClassifierCV is ClassOffsetClassifierCV
    assert "ClassOffsetClassifierCV" in dir(cg)
    code = "import sys, classgap.remedies; print('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"
