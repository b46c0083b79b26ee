"""The complexity term of MR² against the left side it bounds, which is exact for small samples: all signs are tried."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from classgap.functional import class_margins
from classgap.theory import class_sizes
from classgap.theory.mr2 import head_norm, norm_constant, optimal_margins, rademacher_bound
from classgap.theory.mr2 import rademacher_complexity as estimated_complexity

few = settings(max_examples=25, deadline=None, derandomize=True, database=None)
NORMS = [1.0, 1.3, 2.0, 3.0, 5.0, math.inf]


def rademacher_complexity(features, labels, gamma, norm, weight_norm):
    """Eq. (10). The supremum over ‖w_y‖_q ≤ Λ is Λ times the p-norm; it is the same for each of the K classes."""
    scaled = features / gamma[labels][:, None]
    signs = np.array(list(itertools.product([-1, 1], repeat=len(features))))
    expectation = np.linalg.norm(signs @ scaled, norm, axis=1).mean()
    return len(gamma) * weight_norm * expectation / len(features)


@few
@given(seed=st.integers(0, 10_000), norm=st.sampled_from(NORMS), classes=st.integers(1, 4), dim=st.integers(1, 6))
def test_lemma_2_and_proposition_2_bound_the_complexity(seed, norm, classes, dim):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(8, dim)) * (rng.random((8, dim)) < rng.uniform(0.2, 1))  # some of them sparse
    labels = rng.integers(0, classes, 8)  # of unequal counts: Eq. (50) needs no balance
    gamma = rng.uniform(0.2, 3, classes)
    size, counts = class_sizes(torch.from_numpy(features), torch.from_numpy(labels), classes, p=norm)
    bound = rademacher_bound(
        size, counts, torch.from_numpy(gamma), weight_norm=1.7, constant=norm_constant(norm, dim)
    ).item()
    assert rademacher_complexity(features, labels, gamma, norm, 1.7) <= bound * (1 + 1e-9)


def test_equal_classes_give_the_form_of_eq_13_and_16_without_the_nested_root():
    size, gamma = torch.tensor([4.0, 9.0, 1.0]), torch.tensor([1.0, 2.0, 0.5])
    bound = rademacher_bound(size, torch.tensor([20, 20, 20]), gamma, weight_norm=2.5, constant=1.2)
    spread = 4 / 1 + 9 / 4 + 1 / 0.25
    assert bound.item() == pytest.approx(1.2 * 2.5 * math.sqrt(3 / 60) * math.sqrt(spread))
    nested_root = 1.2 * 2.5 * math.sqrt(3 / 60 * math.sqrt(spread))
    assert abs(bound.item() - nested_root) > 0.1


def test_the_nested_root_of_eq_12_is_no_bound():
    """One sample of norm 10: the complexity is exactly 10, the nested root gives √10."""
    features, labels, gamma = np.array([[10.0]]), np.array([0]), np.array([1.0])
    exact = rademacher_complexity(features, labels, gamma, 2.0, 1.0)
    derived = rademacher_bound(torch.tensor([100.0]), torch.tensor([1]), torch.ones(1), weight_norm=1.0).item()
    assert exact == pytest.approx(derived) == pytest.approx(10)
    assert math.sqrt(1 / 1 * math.sqrt(100)) < exact


def test_printed_constants_are_those_of_eq_73():
    assert norm_constant(1.5, 10, printed=True) == norm_constant(2, 10, printed=True) == 1
    for norm in (2.5, 3.0, 4.0, 9.0):
        expected = 2 ** (norm / 2) * math.gamma((norm + 1) / 2) / math.sqrt(math.pi)
        assert norm_constant(norm, 10, printed=True) == pytest.approx(expected)
    assert norm_constant(4, 10, printed=True) == pytest.approx(3)  # E g⁴ of a standard normal variable
    assert norm_constant(math.inf, 10, printed=True) == pytest.approx(math.sqrt(2 * math.log(10)))


def test_the_constant_that_holds_is_haagerups_beyond_2_and_continuous_there():
    assert norm_constant(4, 10) == pytest.approx(3 ** (1 / 4))
    assert norm_constant(2, 10) == norm_constant(2, 10, printed=True) == 1
    assert norm_constant(2 + 1e-9, 10) == pytest.approx(1)
    assert norm_constant(math.inf, 10) == pytest.approx(math.sqrt(2 * math.log(20)))


def test_the_printed_constant_below_2_is_refuted_by_unit_vectors_where_ours_is_exact():
    dim = 6
    left = rademacher_complexity(np.eye(dim), np.zeros(dim, int), np.ones(1), 1.0, 1.0)
    size, counts = class_sizes(torch.eye(dim), torch.zeros(dim, dtype=torch.long), 1, p=1)
    by = {
        printed: rademacher_bound(
            size, counts, torch.ones(1), weight_norm=1.0, constant=norm_constant(1, dim, printed=printed)
        ).item()
        for printed in (True, False)
    }
    assert left == pytest.approx(1)
    assert by[True] == pytest.approx(1 / math.sqrt(dim))
    assert by[False] == pytest.approx(left)


def test_the_printed_constant_at_infinity_is_refuted_by_one_feature():
    assert norm_constant(math.inf, 1, printed=True) == 0
    left = rademacher_complexity(np.ones((5, 1)), np.zeros(5, int), np.ones(1), math.inf, 1.0)
    assert 0 < left <= norm_constant(math.inf, 1) * math.sqrt(1 / 5)


@pytest.mark.parametrize(("norm", "dim"), [(0.5, 3), (math.nan, 3), (2.0, 0)])
def test_impossible_norms_and_dimensions_are_rejected(norm, dim):
    with pytest.raises(ValueError, match="must be"):
        norm_constant(norm, dim)


@few
@given(seed=st.integers(0, 10_000), norm=st.sampled_from(NORMS), with_bias=st.booleans())
def test_head_norm_is_the_largest_dual_norm(seed, norm, with_bias):
    rng = np.random.default_rng(seed)
    weight, bias = rng.normal(size=(3, 4)), rng.normal(size=3)
    dual = 1 / (1 - 1 / norm) if norm > 1 else math.inf
    rows = np.concatenate([weight, bias[:, None]], axis=1) if with_bias else weight
    expected = max(np.linalg.norm(row, dual) for row in rows)
    got = head_norm(torch.from_numpy(weight), torch.from_numpy(bias) if with_bias else None, p=norm)
    assert got.item() == pytest.approx(expected)


@settings(max_examples=10, deadline=None, derandomize=True, database=None)
@given(sizes=st.lists(st.floats(0.05, 50), min_size=2, max_size=6), mean=st.floats(0.5, 3))
def test_corollary_1_matches_a_numeric_optimizer(sizes, mean):
    size = np.array(sizes)
    found = minimize(
        lambda log_gamma: (size / np.exp(2 * log_gamma)).sum(),
        np.full(len(size), math.log(mean)),
        jac=lambda log_gamma: -2 * size / np.exp(2 * log_gamma),
        constraints={
            "type": "eq",
            "fun": lambda log_gamma: np.exp(log_gamma).mean() / mean - 1,
            "jac": lambda log_gamma: np.exp(log_gamma) / len(size) / mean,
        },
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 500},
    )
    assert found.success
    best = optimal_margins(torch.from_numpy(size), mean=mean)
    assert best.spread.item() == pytest.approx(found.fun, rel=1e-5)
    np.testing.assert_allclose(best.gamma_K, np.exp(found.x), rtol=5e-3)
    assert best.gamma_K.mean().item() == pytest.approx(mean)
    assert (size / best.gamma_K.numpy() ** 2).sum() == pytest.approx(best.spread.item())  # attained


def test_best_margins_are_the_margins_of_the_loss():
    size = torch.tensor([8.0, 1.0, 3.0])
    assert optimal_margins(size, mean=2.0).gamma_K.tolist() == class_margins(size, mean=2.0).tolist()


def test_margins_of_another_length_or_sign_are_rejected():
    size, counts = torch.ones(2), torch.ones(2)
    with pytest.raises(ValueError, match="gamma_K must be a vector of 2 numbers"):
        rademacher_bound(size, counts, torch.ones(3), weight_norm=1.0)
    with pytest.raises(ValueError, match="gamma_K must be positive"):
        rademacher_bound(size, counts, torch.tensor([1.0, 0.0]), weight_norm=1.0)


@pytest.mark.parametrize("norm", [1.0, 2.0, 3.0, math.inf])
def test_the_estimate_agrees_with_all_signs(norm):
    rng = np.random.default_rng(3)
    features, labels, gamma = rng.normal(size=(10, 3)), rng.integers(0, 3, 10), rng.uniform(0.5, 2, 3)
    exact = rademacher_complexity(features, labels, gamma, norm, 1.7)
    given = torch.from_numpy(features), torch.from_numpy(labels), torch.from_numpy(gamma)
    found = estimated_complexity(*given, weight_norm=1.7, p=norm, draws=4000)
    assert abs(found.value.item() - exact) < 4 * found.standard_error.item()
    assert found.standard_error.item() < 0.02 * exact
    assert estimated_complexity(*given, weight_norm=1.7, p=norm, draws=4000).value == found.value  # reproducible


def test_the_estimate_is_between_the_bounds_of_khintchine_and_ignores_rows_without_a_class(monkeypatch):
    rng = np.random.default_rng(4)
    features, labels = torch.from_numpy(rng.normal(size=(60, 4))), torch.from_numpy(rng.integers(-1, 3, 60))
    gamma = torch.tensor([0.5, 1.0, 2.0])
    found = estimated_complexity(features, labels, gamma, weight_norm=2.0)
    size, counts = class_sizes(features, labels, 3)
    upper = rademacher_bound(size, counts, gamma, weight_norm=2.0).item()
    assert upper / math.sqrt(2) < found.value.item() < upper
    kept = labels >= 0
    assert estimated_complexity(features[kept], labels[kept], gamma, weight_norm=2.0).value == found.value
    monkeypatch.setattr("classgap.theory.rademacher.BLOCK_ELEMENTS", 1000)  # other signs, drawn in blocks
    blocks = estimated_complexity(features, labels, gamma, weight_norm=2.0)
    torch.testing.assert_close(blocks.value, found.value, rtol=0.1, atol=0)


def test_one_draw_is_rejected():
    with pytest.raises(ValueError, match="draws must be >= 2"):
        estimated_complexity(torch.ones(2, 1), torch.zeros(2, dtype=torch.long), torch.ones(1), weight_norm=1, draws=1)
