"""Corrections over classes, sign tests, and the number of changed classes, by simulation."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from classgap.audit import Audit, AuditDiff, AuditSettings
from classgap.audit.diff_build import third_sign_tests
from classgap.audit.metrics.groups import thirds
from classgap.audit.stats.multiple_tests import THRESHOLD, adjust, attainable_mcnemar, changed_classes, sign_test
from classgap.audit.stats.paired_tests import mcnemar_test
from classgap.audit.stats.pairing import PairedCounts, count_outcomes
from classgap.report.match_text import changed_sentence

QUICK = AuditSettings(n_resamples=50)


def test_corrections_against_scipy_and_a_loop():
    p = np.random.default_rng(0).random(80) ** 3
    name, adjusted = adjust(p, "fdr")
    assert name == "fdr_bh"
    assert adjusted == pytest.approx(stats.false_discovery_control(p, method="bh"))
    assert [adjust(p[:n], "auto")[0] for n in (50, 51)] == ["holm", "fdr_bh"]
    assert adjust(p, "holm")[0] == "holm"
    with pytest.raises(ValueError, match="got 'bonferroni'"):
        adjust(p, "bonferroni")


@pytest.mark.parametrize("changed", [0, 1, 2, 3, 7, 20, 51])
def test_attainable_p_values_against_all_outcomes(changed):
    every = mcnemar_test(np.arange(changed + 1), changed - np.arange(changed + 1))
    expected = max([p for p in every if p <= THRESHOLD], default=0.0)
    assert attainable_mcnemar(np.array([changed]))[0] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("classes", "support", "churn"), [(1000, 50, 0.2), (1000, 50, 0.02), (60, 20, 0.3), (20, 500, 0.1)]
)
def test_number_of_changed_classes_holds_if_nothing_changed(classes, support, churn):
    """Where p-values are coarse, Storey's estimator with one threshold for all classes overstates unchanged classes."""
    rng = np.random.default_rng(1)
    raw, above = [], 0
    for _ in range(300):
        moved = rng.binomial(support, churn, classes)
        fixed = rng.binomial(moved, 0.5)
        p, tau = mcnemar_test(fixed, moved - fixed), attainable_mcnemar(moved)
        raw.append(((p > tau) / (1 - tau)).sum() / classes)
        above += changed_classes(p, tau, 0.95).at_least > 0
    assert np.mean(raw) == pytest.approx(1, abs=0.02)  # unbiased: as many unchanged classes as there are classes
    assert above <= 300 * 0.05 + 3 * np.sqrt(300 * 0.05 * 0.95)


def test_number_of_changed_classes_is_a_lower_bound_if_some_changed():
    rng = np.random.default_rng(2)
    estimates, covered = [], 0
    for _ in range(100):
        moved = rng.binomial(50, 0.25, 1000)
        fixed = rng.binomial(moved, np.where(np.arange(1000) < 300, 0.9, 0.5))
        found = changed_classes(mcnemar_test(fixed, moved - fixed), attainable_mcnemar(moved), 0.95)
        estimates.append(found.estimate)
        covered += found.at_least <= 300
    assert 250 < np.mean(estimates) <= 302
    assert covered >= 95


@pytest.mark.parametrize(("broken", "correction"), [([7], "fdr"), ([7], "holm"), ([7, 8, 9], "fdr"), ([], "fdr")])
def test_number_of_changed_classes_never_contradicts_single_tests(broken, correction):
    targets = np.repeat(np.arange(100), 50)
    before = np.where(np.random.default_rng(0).random(len(targets)) < 0.8, targets, (targets + 1) % 100)
    after = np.where(np.isin(targets, broken), (targets + 1) % 100, before)
    audits = [Audit.from_predictions(predictions=each, targets=targets, settings=QUICK) for each in (before, after)]
    diff = AuditDiff.from_audits(*audits, n_resamples=50, correction=correction)
    text = changed_sentence(diff)
    assert len(diff.regressed) == len(broken)
    assert ("No evidence that any" in text) == (not broken)
    assert (
        f"Single tests show that {len(broken)} of 100 classes changed; no evidence that others did" in text
    ) == bool(broken)


def test_sign_test_against_scipy():
    for up, down in ((9, 1), (4, 4), (0, 7)):
        assert sign_test(up, down) == pytest.approx(stats.binomtest(up, up + down).pvalue)
    assert sign_test(0, 0) is None


def pair(rng, accuracy, after_accuracy, support, **given):
    targets = np.repeat(np.arange(len(accuracy)), support)
    audits = []
    for rates in (accuracy, after_accuracy):
        right = rng.random(len(targets)) < np.asarray(rates)[targets]
        predictions = np.where(right, targets, (targets + 1) % len(accuracy))
        audits.append(Audit.from_predictions(predictions=predictions, targets=targets, settings=QUICK, **given))
    return AuditDiff.from_audits(*audits, n_resamples=50)


def test_many_small_rises_show_in_the_sign_test_not_in_single_classes():
    before = np.linspace(0.5, 0.85, 60)
    diff = pair(np.random.default_rng(0), before, before + 0.1, 20, groups={"odd": list(range(1, 60, 2))})
    assert len(diff.gained) <= 2
    assert diff.groups["odd"].sign_p_value == pytest.approx(
        stats.binomtest(diff.groups["odd"].gained, diff.groups["odd"].gained + diff.groups["odd"].regressed).pvalue
    )
    assert diff.groups["odd"].sign_p_value < 0.01


def test_sign_test_of_the_hard_third_is_not_fooled_by_its_ranking():
    rng = np.random.default_rng(4)
    fooled = honest = 0
    for _ in range(40):
        hard = pair(rng, [0.7] * 45, [0.7] * 45, 30).groups["hard"]
        fooled += sign_test(hard.gained, hard.regressed) < 0.05
        honest += hard.sign_p_value < 0.05
    assert fooled >= 20
    assert honest <= 6


def draw_counts(rng, before, after, support):
    """Paired counts of a test set whose samples change in 30 % of cases beyond the change of their class."""
    targets = np.repeat(np.arange(len(before)), support)
    luck, again = rng.random(len(targets)), rng.random(len(targets))
    right = luck < before[targets]
    right_after = np.where(rng.random(len(targets)) < 0.3, again, luck) < after[targets]
    return PairedCounts(
        tuple(map(str, range(len(before)))),
        count_outcomes(targets, right, right_after, classes=len(before)),
        np.bincount(targets, right)[None] / support,
        np.bincount(targets, right_after)[None] / support,
    )


def sign_p_values(counts, rng):
    before, after = counts.before_SU[0], counts.after_SU[0]
    found = {
        name: SimpleNamespace(gained=(after[part] > before[part]).sum(), regressed=(after[part] < before[part]).sum())
        for name, part in thirds(before, np.ones(len(before), dtype=bool)).items()
    }
    return third_sign_tests(counts, found, rng)


@pytest.mark.parametrize("moved", [0.0, 0.1])
def test_sign_tests_of_ranked_thirds_hold_their_level(moved):
    """Also if classes truly rise and fall: models that differ in their hard classes rank them hard by chance, too."""
    rng = np.random.default_rng(5)
    alarms = dict.fromkeys(("easy", "medium", "hard"), 0)
    for _ in range(300):
        accuracy, change = rng.uniform(0.4, 0.85, 60), moved * rng.choice([-1, 1], 60)
        for name, p in sign_p_values(draw_counts(rng, accuracy + change, accuracy - change, 50), rng).items():
            alarms[name] += p < 0.05
    assert max(alarms.values()) <= 300 * 0.05 + 2 * np.sqrt(300 * 0.05 * 0.95)


@pytest.mark.parametrize("index", range(0, 30, 3))
def test_sign_test_of_a_third_with_one_changed_class_shows_nothing(index):
    rng = np.random.default_rng(6)
    right = rng.binomial(50, 0.8, 30)
    cells = np.zeros((30, 2, 2), dtype=np.int64)
    cells[:, 1, 1], cells[:, 0, 0] = right, 50 - right
    cells[index] = [[50 - right[index], 0], [right[index], 0]]
    after = np.where(np.arange(30) == index, 0.0, right / 50)
    counts = PairedCounts(tuple(map(str, range(30))), cells, right[None] / 50, after[None])
    assert {p for p in sign_p_values(counts, rng).values() if p is not None} == {1.0}
