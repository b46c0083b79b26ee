import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from classgap.theory import class_moments, class_sizes, low_order_term
from classgap.theory.mr2 import (
    class_bounds,
    cross_entropy_risk,
    generalization_bound,
    head_norm,
    margin_bound,
    margin_risk,
    rademacher_bound,
    score_margin,
)

few = settings(max_examples=25, deadline=None, derandomize=True, database=None)


def problem(seed: int, classes: int = 4, dim: int = 3, rows: int = 40):
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(rows, dim, generator=generator, dtype=torch.float64)
    labels = torch.randint(classes, (rows,), generator=generator)
    weight = torch.randn(classes, dim, generator=generator, dtype=torch.float64)
    bias = torch.randn(classes, generator=generator, dtype=torch.float64)
    gamma = torch.rand(classes, generator=generator, dtype=torch.float64) * 3 + 0.1
    return features, labels, weight, bias, gamma


def slow_cross_entropy(logits, label, gamma):
    scaled = logits.numpy() / gamma.item()
    return math.log(np.exp(scaled - scaled[label]).sum())


@few
@given(seed=st.integers(0, 10_000), classes=st.integers(2, 8), scale=st.floats(0.01, 100))
def test_lemma_3_ramp_risk_is_at_most_cross_entropy_over_ln_2(seed, classes, scale):
    features, labels, weight, _, gamma = problem(seed, classes)
    logits = scale * features @ weight.T
    ramp = margin_risk(logits, labels, gamma)
    assert ramp <= cross_entropy_risk(logits, labels, gamma) / math.log(2) + 1e-12
    wrong = (logits.argmax(1) != labels).double().mean()
    assert wrong <= ramp + 1e-12  # the 0-1 loss is below the ramp


def test_risks_match_a_loop_and_exclude_rows_without_a_class():
    features, labels, weight, bias, gamma = problem(1)
    logits = features @ weight.T + bias
    labels[5] = -1
    rows = [i for i in range(40) if labels[i] >= 0]
    margins, losses = [], []
    for i in rows:
        others = [logits[i, k].item() for k in range(4) if k != labels[i]]
        margins.append(logits[i, labels[i]].item() - max(others))
        losses.append(slow_cross_entropy(logits[i], labels[i], gamma[labels[i]]))
    assert score_margin(logits[rows], labels[rows]).tolist() == pytest.approx(margins)
    ramps = [min(1, max(0, 1 - m / gamma[labels[i]].item())) for i, m in zip(rows, margins, strict=True)]
    assert margin_risk(logits, labels, gamma).item() == pytest.approx(np.mean(ramps))
    assert cross_entropy_risk(logits, labels, gamma).item() == pytest.approx(np.mean(losses))


def test_one_class_has_an_infinite_margin_and_no_risk():
    assert score_margin(torch.zeros(2, 1), torch.zeros(2, dtype=torch.long)).tolist() == [math.inf] * 2
    assert margin_risk(torch.zeros(2, 1), torch.zeros(2, dtype=torch.long), torch.ones(1)) == 0


def test_eq_13_term_by_term_on_equal_classes():
    features, _, weight, _, gamma = problem(2)
    labels = torch.arange(4).repeat(10)
    bound = generalization_bound(features @ weight.T, features, labels, gamma, weight, delta=0.1)
    moments = class_moments(features, labels, 4)
    spread = ((moments.mean_K + moments.deviation_K) / gamma**2).sum().sqrt().item()
    largest = max(row.norm().item() for row in weight)
    assert bound.complexity.item() == pytest.approx(4 * math.sqrt(2) * largest * 4 / math.sqrt(40) * spread)
    losses = [slow_cross_entropy(features[i] @ weight.T, labels[i], gamma[labels[i]]) for i in range(40)]
    assert bound.risk.item() == pytest.approx(np.mean(losses) / math.log(2))
    assert bound.low_order.item() == pytest.approx(3 * math.sqrt(math.log(20) / 80))
    assert bound.total.item() == pytest.approx((bound.risk + bound.complexity + bound.low_order).item())


def test_lemma_1_term_by_term_and_below_the_bound_that_continues_from_it():
    features, _, weight, _, gamma = problem(6)
    labels = torch.arange(4).repeat(10)
    labels[3] = -1
    logits = features @ weight.T
    sizes, counts = class_sizes(features, labels, 4)
    complexity = rademacher_bound(sizes, counts, gamma, weight_norm=head_norm(weight))
    bound = margin_bound(logits, labels, gamma, complexity=complexity, delta=0.1)
    ramps = []
    for z, y in zip(logits.tolist(), labels.tolist(), strict=True):
        if y >= 0:
            lead = z[y] - max(z[:y] + z[y + 1 :])
            ramps.append(min(1, max(0, 1 - lead / gamma[y].item())))
    assert bound.risk.item() == pytest.approx(sum(ramps) / 39)
    assert bound.complexity.item() == pytest.approx(4 * math.sqrt(8) * complexity.item())
    assert bound.low_order.item() == pytest.approx(3 * math.sqrt(math.log(20) / (2 * 39)))
    continued = generalization_bound(logits, features, labels, gamma, weight, delta=0.1)
    assert bound.complexity.item() == pytest.approx(continued.complexity.item())
    assert bound.total <= continued.total  # Lemma 3


@pytest.mark.parametrize("norm", [1.5, 2.0, 3.0, math.inf])
def test_a_bias_is_a_weight_on_a_feature_that_is_one(norm):
    features, labels, weight, bias, gamma = problem(3)
    logits = features @ weight.T + bias
    wide_features = torch.cat([features, torch.ones(40, 1)], dim=1)
    wide_weight = torch.cat([weight, bias[:, None]], dim=1)
    for function in (generalization_bound, class_bounds):
        with_bias = function(logits, features, labels, gamma, weight, bias, p=norm)
        as_weight = function(logits, wide_features, labels, gamma, wide_weight, p=norm)
        torch.testing.assert_close(with_bias.total, as_weight.total)


def test_eq_15_term_by_term():
    features, labels, weight, _, gamma = problem(4)
    labels[labels == 2] = 1  # class 2 has no samples
    logits = features @ weight.T
    bounds = class_bounds(logits, features, labels, gamma, weight, delta=0.1)
    printed = class_bounds(logits, features, labels, gamma, weight, delta=0.1, factor=4)
    largest = max(row.norm().item() for row in weight)
    for k in (0, 1, 3):
        rows = (labels == k).nonzero().flatten().tolist()
        score_complexity = largest / len(rows) * math.sqrt(sum(features[i].square().sum().item() for i in rows))
        assert printed.complexity[k].item() == pytest.approx(4 / gamma[k].item() * score_complexity)
        assert bounds.complexity[k].item() == pytest.approx(2 * 4 / gamma[k].item() * score_complexity)
        losses = [slow_cross_entropy(logits[i], labels[i], gamma[k]) for i in rows]
        assert bounds.risk[k].item() == pytest.approx(np.mean(losses) / math.log(2))
        assert bounds.low_order[k].item() == pytest.approx(3 * math.sqrt(math.log(20) / (2 * len(rows))))
    for term in (bounds.risk, bounds.complexity, bounds.low_order, bounds.total):
        assert math.isnan(term[2])


def test_the_factor_of_two_classes_is_the_printed_four():
    features, labels, weight, _, gamma = problem(5, classes=2)
    ours = class_bounds(features @ weight.T, features, labels, gamma, weight)
    printed = class_bounds(features @ weight.T, features, labels, gamma, weight, factor=4)
    torch.testing.assert_close(ours.total, printed.total)


@few
@given(seed=st.integers(0, 10_000), dim=st.integers(1, 5))
def test_the_complexity_of_one_of_two_classes_bounds_that_of_its_margins(seed, dim):
    """z_0 - z_1 = (w_0 - w_1)ᵀφ and ‖w_0 - w_1‖ ≤ 2Λ, so the left side, 2 R̂(margins)/γ, is exact over all signs."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(8, dim))
    weight = rng.normal(size=(2, dim))
    signs = np.array(list(itertools.product([-1, 1], repeat=8)))
    largest = np.linalg.norm(weight, axis=1).max()
    exact = 2 / 0.7 * 2 * largest * np.linalg.norm(signs @ features, axis=1).mean() / 8
    points, labels = torch.from_numpy(features), torch.zeros(8, dtype=torch.long)
    bounds = class_bounds(torch.zeros(8, 2), points, labels, torch.full((2,), 0.7), torch.from_numpy(weight))
    assert exact <= bounds.complexity[0].item() * (1 + 1e-9)
    assert bounds.complexity[0].item() <= 2 * exact  # Jensen costs at most √2


def test_with_many_classes_the_margins_are_richer_than_the_printed_factor_four_allows():
    """16 orthogonal samples of class 0 and 16 other classes: a head for each draw of signs, built by hand."""
    count = 16
    features, labels, gamma = torch.eye(count), torch.zeros(count, dtype=torch.long), torch.ones(count + 1)
    correlations = []
    for signs in torch.randint(2, (200, count), generator=torch.Generator().manual_seed(0)) * 2.0 - 1:
        own = signs / math.sqrt(count)
        others = torch.where(signs[:, None] < 0, features, -own)  # e_i, to lower the margin where the sign is negative
        weight = torch.cat([own[None], others])
        assert torch.allclose(weight.norm(dim=1), torch.ones(count + 1))
        correlations.append((signs @ score_margin(features @ weight.T, labels)).item() / count)
    needed = 2 * np.mean(correlations)  # a lower bound on 2 R̂(margins), γ = 1
    bounds = {
        factor: class_bounds(features @ weight.T, features, labels, gamma, weight, factor=factor).complexity[0].item()
        for factor in (4, None)
    }
    assert bounds[4] == pytest.approx(1)
    assert bounds[4] < needed < bounds[None]


def test_the_printed_factor_four_of_eq_15_fails_with_many_classes():
    """A head that is right on the N samples of class k and wrong on all its other M - N points, each its own feature.

    Point j has φ = (1, e_j)/√2. The class's weight is (β, 0); each unseen point has a class of its own, with the weight
    (0, e_j), which wins there as 1 > β and scores 0 on the sample. The printed bound on the error is below 1/2.
    """
    samples, points, beta = 10**6, 10**8, 0.99
    error = 1 - samples / points
    margin = beta / math.sqrt(2)  # on each sample; the other M - N classes score 0
    gamma = margin / (math.log(points) + 5)
    risk = math.log1p((points - samples) * math.exp(-margin / gamma)) / math.log(2)
    complexity = 4 / gamma * 1 / math.sqrt(samples)  # Λ = 1 and ‖φ‖ = 1
    assert risk + complexity + low_order_term(samples, 0.05).item() < 0.5 < error
    assert complexity * 2 * (points - samples) / 4 > 1  # the factor 2K makes no false promise


def test_the_overall_bound_holds_for_the_true_error():
    """Two Gaussian classes, a fixed head whose error is known, and enough samples for the bound to say something."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(2).repeat(20_000)
    features = torch.randn(40_000, 1, generator=generator, dtype=torch.float64) + (4.0 * labels - 2)[:, None]
    weight = torch.tensor([[-1.0], [1.0]], dtype=torch.float64)
    logits = features @ weight.T
    true_error = 0.5 * math.erfc(2 / math.sqrt(2))
    bound = generalization_bound(logits, features, labels, torch.full((2,), 1.0), weight)
    assert true_error <= bound.total < 1
    assert not bound.vacuous
    assert (true_error <= class_bounds(logits, features, labels, torch.full((2,), 1.0), weight).total).all()


def test_mismatched_inputs_are_rejected():
    features, labels, weight, _, gamma = problem(6)
    logits = features @ weight.T
    with pytest.raises(ValueError, match="gamma_K must be a vector of 4 numbers"):
        class_bounds(logits, features, labels, gamma[:3], weight)
    with pytest.raises(ValueError, match="weight_KD must be a matrix with 3 columns"):
        generalization_bound(logits, features, labels, gamma, weight[:, :2])
    with pytest.raises(ValueError, match="logits_NK must be a matrix with 4 columns"):
        generalization_bound(logits[:, :3], features, labels, gamma, weight)
