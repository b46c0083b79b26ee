import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from classgap.functional import margin_cross_entropy
from classgap.theory.mr2 import margin_slopes, score_margin, trained_margins

few = settings(max_examples=25, deadline=None, derandomize=True, database=None)


def sample(seed: int, classes: int, rows: int, lift: float):
    rng = np.random.default_rng(seed)
    logits, labels = rng.normal(size=(rows, classes)) * 2, rng.integers(0, classes, rows)
    logits[np.arange(rows), labels] += lift
    return torch.from_numpy(logits), torch.from_numpy(labels)


@few
@given(seed=st.integers(0, 10_000), classes=st.integers(2, 6), lift=st.sampled_from([-2.0, 1.0, 8.0]))
def test_slopes_are_those_of_finite_differences_and_positive_for_correct_samples(seed, classes, lift):
    logits, labels = sample(seed, classes, 20, lift)
    gamma = torch.from_numpy(np.random.default_rng(seed).uniform(0.5, 3, classes))
    slopes, step = margin_slopes(logits, labels, gamma), 1e-5
    up, down = (margin_cross_entropy(logits, labels, gamma[labels] + sign * step) for sign in (1, -1))
    np.testing.assert_allclose(slopes, (up - down) / (2 * step), atol=1e-7)
    assert (slopes[score_margin(logits, labels) > 0] > 0).all()


def test_the_loss_of_a_wrong_sample_falls_in_gamma_unlike_discussion_1_states():
    logits, labels = torch.tensor([[3.0, 0.0]]), torch.tensor([1])
    assert margin_slopes(logits, labels, torch.ones(2)) < 0
    losses = [margin_cross_entropy(logits, labels, torch.tensor([g])).item() for g in (0.5, 1.0, 2.0)]
    assert losses[0] > losses[1] > losses[2]


@few
@given(seed=st.integers(0, 10_000), classes=st.integers(2, 6), lift=st.sampled_from([0.5, 1.0, 3.0]))
def test_trained_margins_minimize_the_class_mean_of_the_loss(seed, classes, lift):
    logits, labels = sample(seed, classes, 60, lift)
    found = trained_margins(logits, labels, classes)
    for k in range(classes):
        z, y = logits[labels == k], labels[labels == k]
        if not len(y):
            assert math.isnan(found[k])
            continue

        def loss(inverse: float, z=z, y=y) -> float:
            return torch.nn.functional.cross_entropy(z * inverse, y).item()

        if (score_margin(z, y) > 0).all():
            assert found[k] == 0
            assert loss(1e4) < 1e-6
        elif found[k] == math.inf:
            assert loss(0) <= min(loss(t) for t in (1e-3, 1e-2, 0.1, 1, 10))
        else:
            best = minimize_scalar(loss, bounds=(0, 50), method="bounded", options={"xatol": 1e-10})
            assert 1 / found[k].item() == pytest.approx(best.x, abs=1e-5)


def test_equal_logits_rows_without_a_class_and_a_single_class():
    assert trained_margins(torch.zeros(3, 2), torch.tensor([0, 0, 1]), 2).isnan().all()
    assert trained_margins(torch.zeros(3, 1), torch.tensor([0, 0, 0]), 1).isnan().all()
    logits, labels = sample(3, 3, 40, 1.0)
    wider = torch.cat([logits, torch.full((1, 3), 1e6, dtype=logits.dtype)])
    with_ignored = trained_margins(wider, torch.cat([labels, torch.tensor([-1])]), 3)
    torch.testing.assert_close(with_ignored, trained_margins(logits, labels, 3))
    assert margin_slopes(logits[:2], torch.tensor([0, -1]), torch.ones(3))[1] == 0
