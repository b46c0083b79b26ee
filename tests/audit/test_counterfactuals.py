"""Cross-fitted changes, against direct computations with NumPy, SciPy and scikit-learn."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from classgap.audit.diagnosis import linear_head
from classgap.audit.diagnosis.budget import PARTS, Assignment
from classgap.audit.diagnosis.counterfactuals import (
    N_FOLDS,
    PRIOR_SAMPLES,
    TopScores,
    counterfactuals,
    fit_offsets,
    fit_temperature,
    stratified_folds,
)
from classgap.audit.diagnosis.label_doubts import doubted_labels
from classgap.audit.diagnosis.linear_head import ClassMoments, linear_scores
from classgap.audit.io.predictions import Predictions


def gaussian(classes=6, each=60, dim=10, apart=3.0, seed=0):
    rng = np.random.default_rng(seed)
    means = apart * np.eye(classes, dim)
    targets = np.repeat(np.arange(classes), each)
    features = means[targets] + rng.normal(size=(len(targets), dim))
    return targets, features, features @ means.T - 0.5 * (means**2).sum(axis=1)


def test_folds_are_stratified_and_do_not_depend_on_the_order():
    rng = np.random.default_rng(0)
    labels, key = rng.integers(0, 4, 203), rng.normal(size=203)
    folds, order = stratified_folds(labels, key, 5), rng.permutation(203)
    np.testing.assert_array_equal(stratified_folds(labels[order], key[order], 5), folds[order])
    for k in range(4):
        sizes = np.bincount(folds[labels == k], minlength=5)
        assert sizes.max() - sizes.min() <= 1


def test_temperature_minimizes_cross_entropy():
    targets, _, logits = gaussian()
    data = Predictions.from_arrays(targets, logits=5 * logits)
    found = fit_temperature(TopScores.from_logits(data.logits_NK, data.targets_N))
    losses = {
        scale: -log_softmax(scale * 5 * logits, axis=1)[np.arange(len(targets)), targets].mean()
        for scale in np.geomspace(0.02, 2, 400)
    }
    assert found == pytest.approx(min(losses, key=losses.get), rel=0.05)


def test_offsets_balance_the_probability_mass():
    targets, _, logits = gaussian()
    logits = logits.copy()
    logits[:, 2] -= 3
    scores = TopScores.from_logits(torch.as_tensor(logits), np.asarray(targets))
    found = fit_offsets(scores, iterations=500).double().numpy()
    each = len(targets) // 6
    pull = PRIOR_SAMPLES / each

    def imbalance(offsets):
        mass = softmax(logits + offsets, axis=1).sum(axis=0) / each
        return np.square(np.log((1 + pull) / (mass + pull))).sum()

    best = minimize(imbalance, np.zeros(6), method="BFGS").x
    np.testing.assert_allclose(found, best - best.mean(), atol=0.05)
    assert found[2] - np.delete(found, 2).mean() == pytest.approx(3, abs=0.5)


def test_moments_of_folds_add_up_to_a_direct_fit(monkeypatch):
    targets, features, _ = gaussian()
    kept = np.arange(len(targets)) % 5 != 0
    tensor = torch.from_numpy(features)
    parts = [ClassMoments.from_features(tensor, targets, 6, np.arange(len(targets)) % 5 == fold) for fold in range(5)]
    monkeypatch.setattr(linear_head, "SHRINKAGE", 0.0)
    left_out = (ClassMoments.sum(parts) - parts[0]).discriminant()
    scores = linear_scores(tensor, left_out).numpy()
    # The direct formula, with the covariance shrunk towards its diagonal as far as the sample size asks for.
    x, y = features[kept], targets[kept]
    means = np.stack([x[y == k].mean(axis=0) for k in range(6)])
    centered = x - means[y]
    degrees = len(y) - 6
    covariance = centered.T @ centered / degrees
    weight = 10 / (10 + degrees)
    shrunk = (1 - weight) * covariance + weight * np.diag(np.diag(covariance))
    expected = features @ np.linalg.solve(shrunk, means.T) - 0.5 * np.einsum(
        "kd,dk->k", means, np.linalg.solve(shrunk, means.T)
    )
    np.testing.assert_allclose(scores - scores[:, :1], expected - expected[:, :1], rtol=1e-8, atol=1e-8)
    reference = LinearDiscriminantAnalysis(priors=np.full(6, 1 / 6)).fit(x, y)
    assert (scores.argmax(axis=1) == reference.predict(features)).mean() > 0.97


def test_a_class_without_samples_is_never_predicted_by_the_head():
    targets, features, _ = gaussian(classes=3)
    head = ClassMoments.from_features(torch.from_numpy(features), targets, 5).discriminant()
    assert set(linear_scores(torch.from_numpy(features), head).argmax(dim=1).tolist()) <= {0, 1, 2}


def test_offsets_find_a_shift_on_samples_they_were_not_fitted_on():
    targets, _, logits = gaussian(each=200)
    shifted = logits - 4 * np.eye(6)[1]
    found = counterfactuals(Predictions.from_arrays(targets, logits=shifted), seed=0)
    own = targets == 1
    before, after = (shifted.argmax(axis=1) == 1)[own].mean(), (found.decision_N == 1)[own].mean()
    assert after > before + 0.1
    assert found.offsets_K.argmax() == 1


def test_the_given_logits_stay_if_another_head_does_not_help(monkeypatch):
    targets, _, logits = gaussian(apart=20.0)
    noise = np.random.default_rng(1).normal(size=(len(targets), 4))
    data = Predictions.from_arrays(logits=logits, targets=targets, features=noise)
    fitted, discriminant = [], ClassMoments.discriminant
    monkeypatch.setattr(ClassMoments, "discriminant", lambda self: fitted.append(1) or discriminant(self))
    np.testing.assert_array_equal(counterfactuals(data, 0).head_N, data.predictions_N)
    assert len(fitted) == N_FOLDS  # only those that choose


def test_noise_gets_no_offsets():
    targets, _, logits = gaussian(each=30)
    found = counterfactuals(Predictions.from_arrays(targets, logits=logits), seed=0)
    right = logits.argmax(axis=1) == targets
    assert (found.decision_N == targets).sum() >= right.sum() - 0.01 * len(targets)


@pytest.mark.parametrize("tuned", [False, True])
def test_every_error_is_assigned_at_most_once(tuned):
    targets, features, logits = gaussian(apart=2.0)
    kwargs = {"train_features": features, "train_targets": targets} if tuned else {}
    data = Predictions.from_arrays(targets, logits=logits, features=features, **kwargs)
    assignment = Assignment.from_predictions(data, seed=0)
    for k, budget in enumerate(assignment.budgets(0.95)):
        errors = int(((targets == k) & (data.predictions_N != k)).sum())
        assert budget.errors == errors
        assert sum(getattr(budget, part).removed for part in PARTS) + budget.unexplained == errors
        assert budget.lower_bound is not tuned
    assert (assignment.part_N[data.predictions_N == targets] == -1).all()


def test_doubts_need_a_typical_margin_and_an_unlikely_label():
    targets, _, logits = gaussian(each=200, apart=4.0)
    labels = targets.copy()
    moved = np.flatnonzero(targets == 0)[:40]
    labels[moved] = 3
    data = Predictions.from_arrays(labels, logits=logits)
    doubted = np.flatnonzero(doubted_labels(data, counterfactuals(data, seed=0)))
    assert set(doubted) <= set(moved)
    assert len(doubted) >= 20
    near = counterfactuals(Predictions.from_arrays(targets, logits=logits), seed=0)
    assert doubted_labels(Predictions.from_arrays(targets, logits=logits), near).mean() < 0.005


@pytest.mark.parametrize("samples", [1, 2, N_FOLDS - 1, 7])
def test_tiny_inputs(samples):
    rng = np.random.default_rng(samples)
    targets = np.arange(samples) % 2
    data = Predictions.from_arrays(
        targets, logits=rng.normal(size=(samples, 3)), features=rng.normal(size=(samples, 4))
    )
    assert len(Assignment.from_predictions(data, seed=0).budgets(0.95)) == 3


@pytest.mark.parametrize("logits", [np.zeros((300, 10)), np.random.default_rng(0).normal(size=(2000, 50)).round()])
def test_equal_scores_are_predicted_alike_without_offsets(logits):
    targets = np.arange(len(logits)) % logits.shape[1]
    scores = TopScores.from_logits(torch.as_tensor(logits, dtype=torch.float32), np.asarray(targets))
    predicted = scores.predict(torch.zeros(logits.shape[1])).numpy()
    np.testing.assert_array_equal(predicted, logits.argmax(axis=1))
    # Swapping classes among equal scores must not lose one.
    assert all(len(set(row[:-1].tolist())) == len(row) - 1 for row in scores.classes_Nm)


def test_constant_scores_have_no_decision_to_correct():
    found = Assignment.from_predictions(Predictions.from_arrays(np.arange(400) % 10, logits=np.zeros((400, 10))), 0)
    np.testing.assert_array_equal(found.found.decision_N, 0)
    assert found.fixed_K["decision"].sum() == found.broken_K["decision"].sum() == 0


@pytest.mark.filterwarnings("error")
def test_scores_at_the_limit_of_single_precision():
    targets, _, logits = gaussian()
    found = counterfactuals(
        Predictions.from_arrays(targets, logits=np.float32(logits / np.abs(logits).max() * 3e38)), 0
    )
    assert np.isfinite([found.own_N, found.confidence_N]).all()


@pytest.mark.parametrize("scale", [1, 1e6, 1e15])
@pytest.mark.parametrize("seed", range(5))
def test_copies_of_one_sample_per_class_are_classified_by_it(scale, seed):
    # The variance within classes is 0 up to rounding errors of the sums.
    samples = torch.from_numpy(scale * np.random.default_rng(seed).normal(size=(12, 4))).float()
    features, labels = samples.repeat(3, 1), np.tile(np.arange(12), 3)
    weight, bias = ClassMoments.from_features(features, labels, 12).discriminant()
    np.testing.assert_array_equal(linear_scores(features, (weight, bias)).argmax(dim=1), labels)
