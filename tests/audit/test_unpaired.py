"""Comparisons of independent test sets, against scipy and by simulation."""

import numpy as np
import pytest
from scipy import stats

from classgap.audit import Audit, AuditDiff, AuditSettings
from classgap.audit.stats.intervals import newcombe_interval
from classgap.audit.stats.unpaired import UnpairedCounts, fisher_test

QUICK = AuditSettings(n_resamples=50)


def draw(rng, accuracy, support, name):
    targets = np.repeat(np.arange(len(support)), support)
    right = rng.random(len(targets)) < np.asarray(accuracy)[targets]
    predictions = np.where(right, targets, (targets + 1) % len(support))
    return Audit.from_predictions(predictions=predictions, targets=targets, name=name, settings=QUICK)


@pytest.mark.parametrize(
    ("first", "second"), [((8, 10), (1, 6)), ((0, 5), (0, 9)), ((40, 50), (25, 49)), ((3, 3), (3, 4))]
)
def test_fisher_against_scipy(first, second):
    (a, n), (b, m) = first, second
    expected = stats.fisher_exact([[a, n - a], [b, m - b]]).pvalue
    assert fisher_test(first, second)[0] == pytest.approx(expected)


def test_attainable_p_value_against_all_tables():
    right, n, m = 12, 10, 9
    found = [stats.fisher_exact([[a, n - a], [right - a, m - right + a]]).pvalue for a in range(3, 11)]
    assert fisher_test((7, n), (5, m), below=0.5)[1] == pytest.approx(max(p for p in found if p <= 0.5))


def test_classes_and_intervals_of_two_test_sets():
    rng = np.random.default_rng(0)
    before, after = draw(rng, [0.9, 0.5, 0.7], [60, 70, 80], "v1"), draw(rng, [0.9, 0.9, 0.7], [50, 90, 65], "v2")
    diff = AuditDiff.from_audits(before, after, unpaired=True)
    assert (diff.paired, diff.n_samples, diff.n_samples_after) == (False, 210, 205)
    for k, entry in enumerate(diff.classes):
        a, b = (round(each.classes[k].accuracy * each.classes[k].support) for each in (before, after))
        n, m = before.classes[k].support, after.classes[k].support
        assert (entry.support, entry.support_after, entry.fixed) == (n, m, None)
        assert entry.p_value == pytest.approx(stats.fisher_exact([[a, n - a], [b, m - b]]).pvalue)
        assert entry.interval == pytest.approx(newcombe_interval((b, m), (a, n)))
    assert diff.gained == ("1",)
    assert diff.overall.after == pytest.approx(after.overall.accuracy)
    assert AuditDiff.from_dict(diff.to_dict()) == diff
    assert "Fisher" in str(diff)


def test_random_dealing_keeps_the_sum_and_its_spread():
    counts = UnpairedCounts(("a",), np.array([30]), np.array([50]), np.array([20]), np.array([40]))
    before, after = counts.swap_sides(4000, np.random.default_rng(0))
    np.testing.assert_allclose(before * 50 + after * 40, 50)
    expected = stats.hypergeom(90, 50, 50)
    assert before.mean() * 50 == pytest.approx(expected.mean(), abs=0.2)
    assert before.std() * 50 == pytest.approx(expected.std(), rel=0.05)


def test_equal_models_are_rarely_significant_and_thirds_account_for_their_ranking():
    rng = np.random.default_rng(3)
    accuracy, verdicts, naive, claimed, signs = np.linspace(0.7, 0.8, 30), 0, 0, 0, 0
    for _ in range(40):
        before, after = (draw(rng, accuracy, [25] * 30, name) for name in ("v1", "v2"))
        diff = AuditDiff.from_audits(before, after, unpaired=True, n_resamples=200)
        verdicts += bool(diff.gained or diff.regressed)
        hard = diff.groups["hard"]
        naive += hard.change.interval.low > 0
        claimed += hard.change.significant
        signs += hard.sign_p_value < 0.05
    assert verdicts <= 5
    assert naive >= 15
    assert claimed <= 5
    assert signs <= 6


def test_several_runs_are_rejected():
    audit = draw(np.random.default_rng(0), [0.5, 0.5], [9, 9], "v1")
    with pytest.raises(ValueError, match="one run per side, got 2"):
        AuditDiff.from_audits([audit] * 2, [audit] * 2, unpaired=True)
