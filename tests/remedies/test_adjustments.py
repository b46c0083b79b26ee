"""Families of adjustments and their modules against NumPy."""

import numpy as np
import pytest
import torch
from fix_cases import biased_logits, softmax
from torch import nn

from classgap.audit.diagnosis.counterfactuals import TopScores
from classgap.remedies.adjustments import EMPHASES, STRENGTHS, Calibrated, Context, adjustments, class_weights
from classgap.remedies.evaluation import Ranking
from classgap.remedies.modules import ClassAffine, ExpectedCost, Head, MeanProbability, mean_probability
from classgap.remedies.sources import Source, ensemble


def fitted(context, name, labels, logits):
    data = Calibrated.from_scores(TopScores.from_logits(torch.from_numpy(logits), labels))
    ranking = Ranking.from_predictions(logits.argmax(axis=1), labels, context.num_classes)
    family = next(each for each in adjustments(context) if each.name == name)
    return family.fit(data, ranking), data, ranking


def test_families_depend_on_the_context():
    assert [each.name for each in adjustments(Context(3, train_counts_K=np.array([5.0, 5, 5])))] == [
        "class-offsets",
        "class-temperature",
    ]
    everything = Context(3, train_counts_K=np.array([50.0, 5, 5]), costs_KK=np.ones((3, 3)))
    names = ["prior-correction", "expected-cost", "class-offsets", "class-temperature"]
    assert [each.name for each in adjustments(everything)] == names
    # A class without training samples has no prior to divide by.
    empty = Context(3, train_counts_K=np.array([50.0, 5, 0]))
    assert "prior-correction" not in [each.name for each in adjustments(empty)]


@pytest.mark.parametrize("priors", [None, np.array([0.2, 0.3, 0.5])])
def test_prior_correction_is_the_rule_of_bayes(priors):
    labels, logits = biased_logits(3, 40)
    counts = np.array([70.0, 20, 10])
    candidates, _, _ = fitted(Context(3, train_counts_K=counts, priors_K=priors), "prior-correction", labels, logits)
    for candidate in candidates:
        target = np.full(3, 1 / 3) if priors is None else priors
        joint = softmax(logits.astype(float)) * (target / (counts / 100)) ** candidate.settings["strength"]
        posterior = joint / joint.sum(axis=1, keepdims=True)
        found = candidate.module(torch.from_numpy(logits)).softmax(dim=1).numpy()
        np.testing.assert_allclose(found, posterior, atol=1e-5)
    assert 1.0 in [candidate.settings["strength"] for candidate in candidates]


def test_expected_cost_is_the_argmin_over_classes():
    labels, logits = biased_logits(4, 60)
    costs = np.random.default_rng(0).exponential(size=(4, 4))
    counts = np.array([40.0, 30, 20, 10])
    context = Context(4, "cost", counts, None, costs)
    candidates, data, _ = fitted(context, "expected-cost", labels, logits)
    assert [candidate.settings["prior_strength"] for candidate in candidates] == [0, 0.5, 1]
    for candidate in candidates:
        joint = softmax(data.scale * logits.astype(float)) / counts ** candidate.settings["prior_strength"]
        expected = joint / joint.sum(axis=1, keepdims=True) @ costs
        for dtype in (torch.float32, torch.float64):
            scores = candidate.module(torch.from_numpy(logits).to(dtype))
            assert scores.dtype == dtype
            np.testing.assert_allclose(scores.numpy(), -expected, atol=1e-5)


def test_offsets_come_in_all_strengths_and_are_proportional():
    labels, logits = biased_logits(6, 40)
    candidates, data, _ = fitted(Context(6), "class-offsets", labels, logits)
    assert len(candidates) == len(EMPHASES) * len(STRENGTHS)
    full = {each.settings["emphasis"]: each.module for each in candidates if each.settings["strength"] == 1}
    for candidate in candidates:
        expected = candidate.settings["strength"] * full[candidate.settings["emphasis"]].offset
        torch.testing.assert_close(candidate.module.offset, expected)
        np.testing.assert_allclose(candidate.module.scale.numpy(), data.scale, rtol=1e-6)
    assert full[1.0].offset.argmin() == 0  # the favored class
    balanced, _, _ = fitted(Context(6, "balanced"), "class-offsets", labels, logits)
    assert len(balanced) == len(STRENGTHS)  # no class is emphasized


def test_class_temperatures_are_positive_and_add_no_offsets():
    labels, logits = biased_logits(6, 40)
    candidates, _, _ = fitted(Context(6), "class-temperature", labels, logits)
    for candidate in candidates:
        assert bool((candidate.module.scale > 0).all())
        np.testing.assert_array_equal(candidate.module.offset.numpy(), 0)


@pytest.mark.parametrize(("goal", "group"), [("hard", "hard"), ("worst", "worst")])
def test_class_weights_emphasize_the_goal(goal, group):
    ranking = Ranking({"easy": np.array([0]), "medium": np.array([1]), "hard": np.array([2]), "worst": np.array([2])})
    weights = class_weights((3.0, 2.0), ranking, Context(3, goal))
    assert weights.tolist() == [2, 1, 3]
    priors = np.array([0.5, 0.25, 0.25])
    assert class_weights((3.0, 2.0), ranking, Context(3, goal, priors_K=priors)).tolist() == [3, 0.75, 2.25]
    assert ranking.members[group].tolist() == [2]


def test_class_affine_treats_logits_and_log_probabilities_alike():
    _, logits = biased_logits(5, 20)
    rng = np.random.default_rng(0)
    scale, offset = rng.uniform(0.5, 2, 5), rng.normal(size=5)
    module = ClassAffine(torch.from_numpy(scale), torch.from_numpy(offset))
    log_p = np.log(softmax(logits.astype(float)))
    for given in (logits.astype(float), log_p, log_p + 7):
        np.testing.assert_allclose(module(torch.from_numpy(given)).numpy(), log_p * scale + offset, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_mean_probability_by_numpy(dtype):
    logits = np.random.default_rng(0).normal(size=(3, 7, 4)).astype(dtype) * 3
    expected = np.log(np.mean([softmax(each.astype(float)) for each in logits], axis=0))
    found = mean_probability([torch.from_numpy(each) for each in logits])
    assert found.dtype == (torch.float64 if dtype == np.float64 else torch.float32)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-5)


def test_mean_probability_of_extreme_logits_is_finite():
    logits = torch.tensor([[[1e4, -1e4]], [[1e4, -1e4]]])
    assert bool(MeanProbability()(logits).isfinite().all())


def test_ensembles_average_fitting_and_test_samples():
    logits = np.random.default_rng(1).normal(size=(2, 2, 6, 3)).astype(np.float32)
    sources = [Source(name, *map(torch.from_numpy, part)) for name, part in zip("ab", logits, strict=True)]
    both = ensemble(sources)
    assert (both.members, both.passes, both.inputs) == (("a", "b"), 2.0, "ensemble")
    for found, part in ((both.logits_NK, logits[:, 0]), (both.test_logits_NK, logits[:, 1])):
        np.testing.assert_allclose(found.exp().numpy(), softmax(part).mean(axis=0), rtol=1e-5)
    assert ensemble([Source("a", both.logits_NK), sources[1]]).test_logits_NK is None


def test_head_is_linear():
    rng = np.random.default_rng(0)
    weight, bias, features = rng.normal(size=(3, 5)), rng.normal(size=3), rng.normal(size=(4, 5))
    head = Head(torch.from_numpy(weight), torch.from_numpy(bias))
    assert isinstance(head, nn.Module)
    found = head(torch.from_numpy(features).float()).numpy()
    np.testing.assert_allclose(found, features @ weight.T + bias, atol=1e-5)
    assert ExpectedCost.from_config({"num_classes": 3}).cost.shape == (3, 3)
