"""Paired tests against scipy and against Holm's procedure step by step."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from classgap.audit.stats.paired_tests import (
    benjamini_hochberg,
    holm,
    mcnemar_test,
    paired_t_test,
    pooled_t_test,
    sign_flip_test,
)


def test_mcnemar_is_the_two_sided_binomial_test():
    fixed, broken = (grid.ravel() for grid in np.mgrid[0:9, 0:9])
    got = mcnemar_test(fixed, broken)
    for b, c, p in zip(fixed, broken, got, strict=True):
        assert p == pytest.approx(1.0 if b + c == 0 else stats.binomtest(int(b), int(b + c)).pvalue)


def test_sign_flip_test_against_all_signs():
    for moves in ([1, 1, 2], [3, 3, 1, 1, 1], [2], []):
        sums = [np.dot(signs, moves) for signs in product([-1, 1], repeat=len(moves))]
        counts = np.array([[moves.count(k) for k in (1, 2, 3)]])
        for total in {abs(each) for each in sums}:
            expected = np.mean(np.abs(sums) >= total)
            assert sign_flip_test(counts, np.array([total]))[0] == pytest.approx(expected)


def test_sign_flip_test_of_ones_is_mcnemars():
    fixed, broken = np.array([0, 3, 400, 20, 5]), np.array([0, 9, 300, 20, 0])
    got = sign_flip_test((fixed + broken)[:, None], fixed - broken)
    np.testing.assert_allclose(got, mcnemar_test(fixed, broken), atol=1e-12)


def test_pooled_t_test_keeps_its_level():
    """Runs vary more than samples alone would make them; no class truly changes."""
    rng = np.random.default_rng(0)
    support, truth, found = np.full(20, 200), rng.uniform(0.5, 0.9, 20), 0
    for _ in range(300):
        shares = np.clip(truth + rng.normal(0, 0.03, (2, 3, 20)), 0, 1)
        before, after = rng.binomial(200, shares) / 200
        found += holm(pooled_t_test(before, after, support)).min() < 0.05
    assert found / 300 < 0.1


def test_pooled_t_test_of_one_class_is_the_paired_t_test():
    before, after = np.array([[0.5], [0.6], [0.55]]), np.array([[0.62], [0.65], [0.7]])
    expected = stats.ttest_rel(after, before).pvalue
    np.testing.assert_allclose(pooled_t_test(before, after, np.array([40])), expected)


def test_runs_that_agree():
    before = np.array([[0.5, 0.5], [0.5, 0.5]])
    np.testing.assert_allclose(
        pooled_t_test(before, before + np.array([0.1, 0.0]), np.array([10, 10])), [0, 1], atol=1e-6
    )


def test_holm_rejects_what_the_step_by_step_procedure_rejects():
    rng = np.random.default_rng(0)
    for _ in range(50):
        p = rng.random(12) ** 4
        adjusted = holm(p)
        rejected = set()
        for step, i in enumerate(np.argsort(p)):
            if p[i] > 0.05 / (12 - step):
                break
            rejected.add(int(i))
        assert set(np.flatnonzero(adjusted <= 0.05).tolist()) == rejected
        assert (adjusted >= p).all()
        assert (adjusted <= 1).all()


def test_benjamini_hochberg_agrees_with_scipy():
    rng = np.random.default_rng(0)
    for size in (1, 2, 12, 300):
        p = rng.random(size) ** 3
        p[: size // 3] = p[0]  # ties
        np.testing.assert_allclose(benjamini_hochberg(p), stats.false_discovery_control(p), rtol=1e-12)


def test_holm_never_falls_below_a_smaller_p_value():
    # Sorted and scaled: 0.005·4, 0.01·3, 0.03·2, 0.04·1; the last is raised to the one before.
    assert holm(np.array([0.01, 0.04, 0.03, 0.005])).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_paired_t_test_agrees_with_scipy():
    a, b = np.random.default_rng(1).normal(size=(2, 6))
    assert paired_t_test(b - a) == pytest.approx(stats.ttest_rel(b, a).pvalue)
    assert paired_t_test(np.array([1.0])) is None
    assert paired_t_test(np.ones(4)) is None


def test_equal_changes_are_equal_despite_rounding():
    assert paired_t_test(np.array([0.8, 0.7]) - np.array([0.7, 0.6])) is None
