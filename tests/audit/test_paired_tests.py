"""Paired tests against scipy and against Holm's procedure step by step."""

import numpy as np
import pytest
from scipy import stats

from classgap.audit.paired_tests import exact_mcnemar, holm, paired_t


def test_mcnemar_is_the_two_sided_binomial_test():
    fixed, broken = (grid.ravel() for grid in np.mgrid[0:9, 0:9])
    got = exact_mcnemar(fixed, broken)
    for b, c, p in zip(fixed, broken, got, strict=True):
        assert p == pytest.approx(1.0 if b + c == 0 else stats.binomtest(int(b), int(b + c)).pvalue)


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


def test_holm_never_falls_below_a_smaller_p_value():
    # Sorted and scaled: 0.005·4, 0.01·3, 0.03·2, 0.04·1; the last is lifted to the one before.
    assert holm(np.array([0.01, 0.04, 0.03, 0.005])).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_paired_t_agrees_with_scipy():
    a, b = np.random.default_rng(1).normal(size=(2, 6))
    assert paired_t(b - a) == pytest.approx(stats.ttest_rel(b, a).pvalue)
    assert paired_t(np.array([1.0])) is None
    assert paired_t(np.ones(4)) is None
