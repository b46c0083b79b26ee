"""Fitted offsets and temperatures against scipy on the objective over all classes, written in NumPy."""

import numpy as np
import pytest
import torch
from fix_cases import biased_logits, softmax
from scipy.optimize import minimize

from classgap.audit.diagnosis.counterfactuals import TopScores, fit_temperature
from classgap.remedies.offsets import fit_class_offsets, fit_class_scales


def full_objective(adjust, logits, labels, weights, shrinkage):
    """Σ_i w_i CE(adjust(z_i), y_i) + (λ/2) Σ_k θ_k² over all classes, without the shortcut of the top scores."""
    counts = np.bincount(labels, minlength=logits.shape[1])
    ridge = shrinkage / np.median(counts[counts > 0])
    sample_weights = weights[labels] / counts[labels]

    def objective(theta):
        probabilities = softmax(adjust(logits, theta))
        loss = -(sample_weights * np.log(probabilities[np.arange(len(labels)), labels])).sum()
        return loss + ridge / 2 * (theta**2).sum()

    return objective


def add(logits, theta):
    return logits + theta


def scale(logits, theta):
    return np.log(softmax(logits)) * np.exp(theta)


@pytest.mark.parametrize("num_classes", [2, 3, 8])
@pytest.mark.parametrize("shrinkage", [0.1, 3.0, 20.0])
@pytest.mark.parametrize(("fit", "adjust"), [(fit_class_offsets, add), (fit_class_scales, scale)])
def test_fits_reach_the_minimum_of_the_full_objective(num_classes, shrinkage, fit, adjust):
    labels, logits = biased_logits(num_classes, 25, seed=num_classes)
    weights = np.linspace(0.5, 2, num_classes)
    found = fit(TopScores.from_logits(torch.from_numpy(logits), labels), torch.from_numpy(weights), shrinkage=shrinkage)
    theta = found.numpy() if adjust is add else np.log(found.numpy())
    objective = full_objective(adjust, logits.astype(float), labels, weights, shrinkage)
    reference = minimize(objective, np.zeros(num_classes), method="BFGS", options={"gtol": 1e-8})
    assert objective(theta) <= reference.fun + 1e-5
    if adjust is add:  # convex: one minimum
        np.testing.assert_allclose(theta, reference.x, atol=5e-3)


def test_many_classes_with_few_samples_come_close_to_the_minimum():
    """With 150 classes the fit sees the highest 24 scores of a sample only."""
    labels, logits = biased_logits(150, 4, separation=5.0)
    scores = TopScores.from_logits(torch.from_numpy(logits), labels)
    found = fit_class_offsets(scores, torch.ones(150)).numpy()
    objective = full_objective(add, logits.astype(float), labels, np.ones(150), 3.0)
    reference = minimize(objective, np.zeros(150), method="L-BFGS-B")
    gained = objective(np.zeros(150)) - reference.fun
    assert objective(np.zeros(150)) - objective(found) > 0.8 * gained
    assert np.corrcoef(found, reference.x)[0, 1] > 0.95


def test_offsets_undo_a_known_bias():
    labels, logits = biased_logits(4, 4000, bias=1.5)
    scores = TopScores.from_logits(torch.from_numpy(logits), labels)
    calibrated = scores.scaled(fit_temperature(scores))
    offsets = fit_class_offsets(calibrated, torch.ones(4)).numpy() / fit_temperature(scores)
    np.testing.assert_allclose(offsets - offsets[1:].mean(), [-1.5, 0, 0, 0], atol=0.15)


def test_temperature_minimizes_cross_entropy():
    labels, logits = biased_logits(5, 400, bias=0.0)
    for factor in (0.2, 1.0, 6.0):
        found = fit_temperature(TopScores.from_logits(torch.from_numpy(logits * np.float32(factor)), labels))

        def cross_entropy(scale, factor=factor):
            probabilities = softmax(logits.astype(float) * factor * scale)
            return -np.log(probabilities[np.arange(len(labels)), labels]).mean()

        best = minimize(lambda value: cross_entropy(np.exp(value[0])), [0.0]).fun
        assert cross_entropy(found) < best + 1e-4
        assert found == pytest.approx(2 / factor, rel=0.1)  # the separation is 2 at unit variance


def test_classes_without_samples_do_not_disturb_the_others():
    labels, logits = biased_logits(4, 50)
    kept = labels != 2
    scores = TopScores.from_logits(torch.from_numpy(logits[kept]), labels[kept])
    for weight in (1.0, 100.0):
        found = fit_class_offsets(scores, torch.tensor([1.0, 1.0, weight, 1.0], dtype=torch.float64))
        if weight == 1:
            first = found
        np.testing.assert_allclose(found.numpy(), first.numpy(), atol=1e-6)
        assert bool(found.isfinite().all())


def test_probabilities_of_zero_do_not_outweigh_other_samples():
    labels, logits = biased_logits(3, 200)
    log_p = np.log(softmax(logits.astype(float)))
    one = log_p.copy()
    one[0, labels[0]] = np.log(np.finfo(np.float32).tiny)  # a label of probability 0
    found = [
        fit_class_offsets(TopScores.from_logits(torch.from_numpy(each), labels), torch.ones(3)).numpy()
        for each in (log_p, one)
    ]
    np.testing.assert_allclose(*found, atol=0.05)
