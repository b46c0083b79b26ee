"""Distances to boundaries against the formula of LMDL Eq. (4.6) in functional, and against a loop."""

import numpy as np
import pytest
import torch

from classgap.audit.geometry.boundaries import build_scorer, measure_boundaries
from classgap.audit.io.predictions import Predictions
from classgap.audit.metrics.class_order import ClassOrder
from classgap.functional import signed_boundary_distance


@pytest.fixture
def case():
    generator = torch.Generator().manual_seed(0)
    features, weight, bias = (torch.randn(size, generator=generator) for size in ((80, 6), (5, 6), (5,)))
    labels = torch.randint(0, 4, (80,), generator=generator)  # class 4 is unseen, but has a boundary
    return features, weight, bias, labels


def test_margins_against_the_formula(case):
    features, weight, bias, labels = case
    order = ClassOrder.from_labels(labels.numpy(), 5)
    means = torch.stack([features[labels == k].mean(dim=0) if k < 4 else torch.zeros(6) for k in range(5)])
    got = measure_boundaries(lambda rows: features[rows] @ weight.T + bias, means, order, weight, bias)
    signed = signed_boundary_distance(features, labels, weight, bias)
    center = signed_boundary_distance(means, torch.arange(5), weight, bias)
    for k in range(4):
        assert got.class_margin_K[k] == pytest.approx(float(signed[labels == k].abs().min()), rel=1e-4)
        assert got.centroid_margin_K[k] == pytest.approx(float(center[k].min()), rel=1e-4)
        assert got.facing_K[k] == int(center[k].argmin())
    assert np.isnan(got.class_margin_K[4])
    assert got.facing_K[4] == -1


@pytest.mark.parametrize("apart", [0.0, 1e-8])
def test_rows_that_coincide_have_no_boundary(apart):
    weight, features = torch.tensor([[1.0, 1.0, 0.0], [1.0, 1.0, apart]]), torch.randn(4, 3)
    order = ClassOrder.from_labels(np.array([0, 0, 1, 1]), 2)
    got = measure_boundaries(lambda rows: features[rows] @ weight.T, torch.zeros(2, 3), order, weight, None)
    assert np.isnan(got.class_margin_K).all()
    assert got.facing_K.tolist() == [-1, -1]


def test_logits_are_used_only_if_they_are_the_heads_scores(case):
    features, weight, bias, labels = case
    logits, rng = features @ weight.T + bias, np.random.default_rng(0)
    rows = np.arange(5)

    def scores(logits_NK, features_ND):
        given = Predictions.from_arrays(labels, logits=logits_NK, features=features_ND, head=(weight, bias))
        return build_scorer(given, rng)

    torch.testing.assert_close(scores(logits, features)(rows), logits[:5])
    torch.testing.assert_close(scores(3 * logits, features)(rows), logits[:5])  # same predictions on another scale
    assert scores(logits, -features) is None  # not the features of this head
