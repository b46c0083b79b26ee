"""Rules of a gate: outcomes against loops and scipy, false alarms by simulation, and impossible comparisons."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from classgap.audit import Audit, AuditSettings, GateResult, GateRules, gate
from classgap.audit.gate import GateChecks, accuracy_bounds, sidak
from classgap.audit.gate_results import RuleResult, Violation
from classgap.audit.stats.crossfit import assign_folds, crossfit_gap, unpaired_crossfit_drops
from classgap.audit.stats.drop_test import drop_p_values
from classgap.report.gate_files import render_markdown
from classgap.report.gate_text import power_sentence, power_warnings, rule_sentence

QUICK = AuditSettings(n_resamples=2, diagnose=False)


def audit(right, targets, name="model", **given):
    classes = int(targets.max()) + 1
    predictions = np.where(right, targets, (targets + 1) % classes)
    return Audit.from_predictions(predictions=predictions, targets=targets, name=name, settings=QUICK, **given)


def pair(rng, before, after, support, shared=0.7, **given):
    """Two models of the given accuracies that fail on similar samples."""
    targets = np.repeat(np.arange(len(before)), support)
    common = rng.random(len(targets)) < shared
    first = rng.random(len(targets))
    second = np.where(common, first, rng.random(len(targets)))
    return (
        audit(first < np.asarray(before)[targets], targets, "v1", **given),
        audit(second < np.asarray(after)[targets], targets, "v2"),
    )


@pytest.fixture(scope="module")
def worse():
    """Class 2 falls from 90 to 40 %."""
    rates = np.array([0.95, 0.8, 0.9, 0.7, 0.6, 0.85])
    return pair(np.random.default_rng(0), rates, rates - np.eye(6)[2] * 0.5, 100, groups={"pets": [0, 2]})


def test_a_class_that_fell_breaks_the_rule(worse):
    result = gate(*worse, max_class_drop=3)
    (rule,) = result.rules
    assert not result.passed
    assert [violation.name for violation in rule.violations] == ["2"]
    before, after = (side.samples.correct[side.samples.targets == 2] for side in worse)
    broken, fixed = (before & ~after).sum(), (~before & after).sum()
    violation = rule.violations[0]
    assert violation.value == pytest.approx(100 * (before.mean() - after.mean()))
    alpha = sidak(0.05, 6)
    assert drop_p_values([broken], [fixed], [100], violation.bound / 100)[0] <= alpha
    assert drop_p_values([broken], [fixed], [100], violation.bound / 100 + 2e-4)[0] > alpha
    assert (rule.worst, rule.n_tested) == ("2", 6)


def test_the_test_is_of_the_limit_not_of_a_change(worse):
    shown = gate(*worse, max_class_drop=3).rules[0].violations[0].bound
    assert not gate(*worse, max_class_drop=shown - 0.1).passed
    assert gate(*worse, max_class_drop=shown + 0.1).passed


def test_groups_of_the_baseline(worse):
    result = gate(*worse, max_group_drop={"pets": 1, "overall": 50})
    pets, overall = result.rules
    assert (pets.passed, overall.passed) == (False, True)
    members = np.isin(worse[0].samples.targets, [0, 2])
    changes = [side.samples.correct[members].mean() for side in worse]  # both classes have 100 samples
    assert pets.value == pytest.approx(100 * (changes[0] - changes[1]))
    assert result.groups["pets"].expected_by_chance == pytest.approx(0, abs=0.3)
    assert result.groups["overall"].drop == pytest.approx(100 * (worse[0].overall.accuracy - worse[1].overall.accuracy))
    assert list(result.groups) == ["overall", "easy", "medium", "hard", "pets"]


def test_group_bound_is_that_of_the_sign_flip_distribution(worse):
    """A group with fixed members: its bound is the exact quantile of swapped samples."""
    bound = gate(*worse, max_group_drop={"overall": 0}).groups["overall"].bound
    before, after = (side.samples.correct for side in worse)
    changed = int((before != after).sum())
    quantile = (2 * stats.binom.ppf(0.95, changed, 0.5) - changed) / len(before)
    assert bound == pytest.approx(100 * (before.mean() - after.mean() - quantile), abs=0.35)


def test_lowest_accuracy_by_exact_bounds(worse):
    result = gate(*worse, min_class_accuracy=60)
    (rule,) = result.rules
    for entry in worse[1].classes:
        right = round(entry.accuracy * entry.support)
        upper = stats.binomtest(right, entry.support, alternative="less").proportion_ci(1 - sidak(0.05, 6)).high
        shown = {violation.name: violation.bound for violation in rule.violations}
        assert (entry.name in shown) == (upper < 0.6)
        if entry.name in shown:
            assert shown[entry.name] == pytest.approx(100 * upper, abs=1e-6)
    assert [violation.name for violation in rule.violations] == ["2"]
    assert accuracy_bounds(np.array([10.0]), np.array([10]), 0.05)[0] == 1


def test_gap_is_that_of_classes_that_are_ranked_on_other_samples():
    rng = np.random.default_rng(1)
    rates = np.repeat([0.9, 0.8, 0.5], 10)
    before, after = pair(rng, rates, rates, 60)
    result = gate(before, after, max_gap=20)
    assert result.rules[0].value == pytest.approx(40, abs=4)
    assert not result.passed
    assert gate(before, after, max_gap=45).passed


def test_equal_classes_have_no_gap_although_both_models_fail_on_the_same_samples():
    rng = np.random.default_rng(2)
    targets, gaps, naive = np.repeat(np.arange(30), 20), [], []
    for _ in range(30):
        right = rng.random(600) < 0.7
        gaps.append(crossfit_gap(targets, right, right, 30, alpha=0.05, rng=rng)[0])
        accuracy = np.sort(np.bincount(targets, weights=right) / 20)
        naive.append(accuracy[20:].mean() - accuracy[:10].mean())
    assert np.mean(naive) > 0.15
    assert np.mean(gaps) == pytest.approx(0, abs=0.03)


def test_folds_are_dealt_evenly_within_classes():
    targets = np.repeat([0, 1, 2], [13, 5, 1])
    folds = assign_folds(targets, 5, np.random.default_rng(0))
    for k, size in enumerate((13, 5, 1)):
        counts = np.bincount(folds[targets == k], minlength=5)
        assert counts.sum() == size
        assert np.ptp(counts) <= 1


@pytest.mark.parametrize(
    ("limit", "rates"), [(0.0, [0.75] * 12), (0.0, np.linspace(0.5, 0.95, 12)), (4.0, [0.75] * 12)]
)
def test_models_at_the_limit_rarely_fail(limit, rates):
    """All classes equal is the worst case for thirds that the baseline ranks."""
    rng = np.random.default_rng(3)
    rules = GateRules(max_class_drop=limit, max_group_drop=dict.fromkeys(("overall", "easy", "hard"), limit))
    after = np.asarray(rates) - limit / 100
    failed = 0
    for seed in range(60):
        checks = GateChecks.from_audits(*pair(rng, rates, after, 30), rules, None, seed)
        failed += not all(rule.passed for rule in checks.rule_results())
    assert failed <= stats.binom.ppf(0.999, 60, 0.05)


def test_easy_third_of_equal_models_falls_by_chance_and_that_is_no_alarm():
    rng = np.random.default_rng(4)
    drops, chance = [], []
    for seed in range(30):
        before, after = pair(rng, [0.75] * 24, [0.75] * 24, 25, shared=0.3)
        easy = gate(before, after, max_group_drop={"easy": 0}, seed=seed).groups["easy"]
        drops.append(easy.drop)
        chance.append(easy.expected_by_chance)
    assert np.mean(drops) > 3
    assert np.mean(drops) == pytest.approx(np.mean(chance), abs=1)


def test_thirds_ranked_elsewhere_are_taken_as_they_are():
    rng = np.random.default_rng(5)
    rates = np.linspace(0.5, 0.95, 12)
    before, after = pair(rng, rates, rates, 40, rank_by=list(range(12)))
    result = gate(before, after, max_group_drop={"easy": 0}, max_gap=60)
    assert result.groups["easy"].expected_by_chance == pytest.approx(0, abs=0.3)
    accuracy = np.array([entry.accuracy for entry in after.classes])
    assert result.rules[1].value == pytest.approx(100 * (accuracy[8:].mean() - accuracy[:4].mean()))


def test_a_drop_below_zero_is_not_called_detectable():
    targets = np.repeat([0, 1], [60, 2])
    right = np.ones(62, dtype=bool)
    result = gate(audit(right, targets), audit(np.arange(62) % 10 > 0, targets), max_class_drop=3)
    values = [group.detectable for group in result.groups.values()]
    assert None in values
    assert all(group.detectable <= group.before for group in result.groups.values() if group.detectable is not None)
    assert power_sentence(result).endswith("points. No drop can be detected in hard.")


def test_detectable_drops_of_classes_are_below_their_accuracy(tmp_path):
    rng = np.random.default_rng(10)
    before, after = pair(rng, np.array([0.4] * 3 + [0.9] * 7), np.array([0.4] * 3 + [0.9] * 7), 30)
    result = gate(before, after, max_class_drop=3)
    drops = result.power.classes
    assert list(drops) == list(before.class_names)
    assert all(drop is None or drop <= 100 * before.classes[int(name)].accuracy for name, drop in drops.items())
    assert [drops[str(k)] for k in range(3)] == [None] * 3
    known = [drop for drop in drops.values() if drop is not None]
    assert (result.power.low, result.power.high) == (min(known), max(known))
    assert result.power.n_undetectable == 10 - len(known)
    assert "In 3 classes, not even a drop to 0 % can be detected" in power_sentence(result)
    result.save(tmp_path / "gate.json")
    assert json.loads((tmp_path / "gate.json").read_text())["power"]["classes"] == drops


@pytest.mark.parametrize("group", ["overall", "easy", "hard", "odd"])
def test_detectable_drops_of_groups_are_detected_although_no_sample_has_changed_yet(group):
    rng = np.random.default_rng(11)
    targets = np.repeat(np.arange(12), 100)
    before = audit(
        rng.random(1200) < np.linspace(0.6, 0.95, 12)[targets], targets, groups={"odd": list(range(1, 12, 2))}
    )
    drop = gate(before, before, max_group_drop={group: 0.5}).groups[group].detectable
    assert drop > 1
    accuracy = np.array([entry.accuracy for entry in before.classes])
    members = (
        np.arange(12) if group == "overall" else [before.class_names.index(n) for n in before.groups[group].members]
    )
    found = 0
    for _ in range(40):
        broken = np.isin(targets, members) & (rng.random(1200) < drop / 100 / accuracy[targets])
        after = audit(before.samples.correct & ~broken, targets)
        found += not gate(before, after, max_group_drop={group: 0.5}).passed
    assert found >= 24


def test_rules_about_one_class_or_several_are_full_sentences():
    rule = RuleResult("max_class_drop", None, 3.0, passed=True, value=1.25, bound=-2.0, worst="cat")
    end = "shown to have dropped by more than 3 points; largest observed drop: 1.2 (class cat)."
    assert rule_sentence(rule) == f"The only class is not {end}"
    assert rule_sentence(replace(rule, n_tested=1200)) == f"None of 1,200 classes is {end}"


def test_rules_with_little_power_are_named_next_to_the_verdict():
    targets = np.repeat(np.arange(10), 30)
    right = np.random.default_rng(0).random(300) < 0.8
    fewer = right & ~((targets == 3) & (np.arange(300) % 4 == 0))
    result = gate(audit(right, targets), audit(fewer, targets), max_class_drop=3, min_class_accuracy=60)
    typical, largest = result.power.median, result.rules[0].value
    assert result.passed
    expected = [
        f"max_class_drop has little power here: a class must typically drop by {typical:.1f} points to be detected; "
        f"the largest observed drop is {largest:.1f}.",
        f"min_class_accuracy has too little power for class 3: its samples do not show that its accuracy, "
        f"{result.rules[1].value:.1f} %, is below 60 %.",
    ]
    assert power_warnings(result) == expected
    assert " ".join(["Passed: 2 of 2 rules hold.", *expected]) in " ".join(str(result).split())
    assert expected[0].replace("_", "\\_") in render_markdown(result)

    few = np.arange(30) % 10
    (warning,) = power_warnings(gate(audit(few > 1, few), audit(few > 1, few), max_class_drop=3))
    assert warning == "max_class_drop cannot show any drop of a single class here; no class dropped."

    many = np.repeat([0, 1], 20_000)
    assert power_warnings(gate(audit(many > -1, many), audit(many > -1, many), max_class_drop=3)) == []


def test_a_bound_beyond_the_observed_drop_is_explained():
    rule = RuleResult("max_group_drop", "hard", 0.5, passed=False, value=7.3, bound=7.4, expected_by_chance=-2.2)
    assert rule_sentence(rule) == (
        "Hard third dropped by 7.3 points (by chance, it would rise by 2.2 points), at least 7.4 points beyond chance; "
        "limit 0.5."
    )
    fixed = replace(rule, group="tail", value=0.0, bound=-0.4, expected_by_chance=0.0)
    assert rule_sentence(fixed) == "Tail did not change, no drop beyond chance; limit 0.5."
    found = Violation("cat", 62.0, 40.0, 40.0, 55.0, 50)
    accuracy = RuleResult(
        "min_class_accuracy", None, 60, passed=False, value=40, bound=55, n_tested=9, violations=(found,)
    )
    assert rule_sentence(accuracy) == "1 of 9 classes is shown to be below 60 %: cat 40.0 % (at most 55.0 %)."


def test_level_is_shared_by_all_rules(worse):
    one, two = GateRules(max_class_drop=3), GateRules(max_class_drop=3, max_group_drop={"hard": 1}, max_gap=30)
    assert (one.alpha, two.alpha) == pytest.approx((0.05, 0.05 / 3))
    assert gate(*worse, rules=two).groups["hard"].bound <= gate(*worse, max_group_drop={"hard": 1}).groups["hard"].bound


def test_changed_test_sets_and_classes():
    rng = np.random.default_rng(6)
    targets = np.repeat(np.arange(4), 50)
    names, later = ["a", "b", "c", "d"], ["a", "b", "c", "e"]
    right = rng.random(200) < 0.8
    before = audit(right, targets, "v1", class_names=names, index=np.arange(200))
    after = audit(right[20:], targets[20:], "v2", class_names=later, index=np.arange(20, 200))
    result = gate(before, after, max_class_drop=1)
    assert (result.n_samples, result.only_before, result.only_after) == (130, 70, 50)
    assert (result.added, result.removed, result.passed) == (("e",), ("d",), True)
    assert gate(before, after, max_class_drop=1, rename={"d": "e"}).n_samples == 180


def test_round_trip_and_text(worse, tmp_path):
    result = gate(*worse, max_class_drop=3, max_group_drop={"hard": 1}, min_class_accuracy=60, max_gap=20)
    result.save(tmp_path / "gate.json")
    assert GateResult.load(tmp_path / "gate.json") == result
    assert "max_group_drop hard=1" in str(result)
    assert repr(result).startswith("<GateResult 'v1' to 'v2': 4 rules")
    with pytest.raises(ValueError, match="not the result of a gate"):
        GateResult.from_dict(worse[0].to_dict())


def test_rules_of_a_file_and_arguments_that_replace_them(worse, tmp_path):
    path = tmp_path / "gate.yaml"
    path.write_text("max_class_drop: 3\nmax_group_drop:\n  hard: 0.5\nconfidence_level: 0.99\n")
    rules = GateRules.load(path)
    assert rules == GateRules(max_class_drop=3, max_group_drop={"hard": 0.5}, confidence_level=0.99)
    result = gate(*worse, rules=path, max_class_drop=60, max_group_drop={"easy": 5})
    assert [(rule.rule, rule.group, rule.limit) for rule in result.rules] == [
        ("max_class_drop", None, 60),
        ("max_group_drop", "hard", 0.5),
        ("max_group_drop", "easy", 5),
    ]
    assert result.confidence_level == 0.99


def test_other_mistakes_are_rejected(worse, tmp_path):
    with pytest.raises(ValueError, match="at least one rule"):
        gate(*worse)
    with pytest.raises(ValueError, match=r"'wild' .* has overall, easy"):
        gate(*worse, max_group_drop={"wild": 1})
    with pytest.raises(ValueError, match="cannot be read"):
        gate(*worse, rules=tmp_path / "none.yaml")
    one = audit(np.ones(5, dtype=bool), np.zeros(5, dtype=np.int64))
    with pytest.raises(ValueError, match="max_gap needs"):
        gate(one, one, max_gap=3)
    targets = np.repeat([0, 1], 50)
    few, many = audit(np.ones(90, dtype=bool), targets[:90]), audit(np.ones(100, dtype=bool), targets)
    with pytest.raises(ValueError, match=r"90 and 100 samples.*--unpaired"):
        gate(few, many, max_class_drop=3)


def other_samples(seed, before, after, support, after_support):
    """Two test sets without common samples."""
    rng = np.random.default_rng(seed)
    sides = []
    for name, rates, size, start in (("old", before, support, 0), ("new", after, after_support, 10_000)):
        targets = np.repeat(np.arange(len(rates)), size)
        right = rng.random(len(targets)) < np.asarray(rates)[targets]
        sides.append(audit(right, targets, name, index=start + np.arange(len(targets))))
    return sides


def test_test_sets_without_common_samples_are_compared_as_independent():
    rates = np.linspace(0.9, 0.6, 6)
    old, new = other_samples(0, rates, rates - [0, 0, 0.45, 0, 0, 0], 100, 80)
    with pytest.raises(ValueError, match="--unpaired"):
        gate(old, new, max_class_drop=3)
    result = gate(old, new, max_class_drop=3, max_group_drop={"overall": 0.5}, max_gap=50, unpaired=True)
    (violation,) = result.rules[0].violations
    assert violation.name == "2"
    assert 10 < violation.bound < violation.value
    expected = [
        stats.fisher_exact([[round(a * 100), 100 - round(a * 100)], [round(b * 80), 80 - round(b * 80)]], "greater")[1]
        for a, b in zip(*([entry.accuracy for entry in side.classes] for side in (old, new)), strict=True)
    ]
    assert int(np.argmin(expected)) == 2
    assert not result.paired
    assert (result.n_samples, result.n_samples_after, result.only_before) == (600, 480, 0)
    easy, hard = (np.mean([new.classes[int(k)].accuracy for k in old.groups[g].members]) for g in ("easy", "hard"))
    assert result.rules[2].value == pytest.approx(100 * (easy - hard))
    assert GateResult.from_dict(result.to_dict()) == result
    assert "not paired: 600 of old and 480 of new" in str(result)


def test_standard_error_of_unpaired_thirds_is_that_of_repeated_draws():
    rng = np.random.default_rng(0)
    rates, sizes, others = np.linspace(0.95, 0.5, 9), 60, 40
    targets = np.repeat(np.arange(9), sizes)
    found = []
    for _ in range(150):
        before = rng.random(len(targets)) < rates[targets]
        right = rng.binomial(others, rates - 0.03)
        drops = unpaired_crossfit_drops(targets, before, right, np.full(9, others), rng)
        found.append([drops[name] for name in ("easy", "hard")])
    drops, errors = np.array(found).transpose(2, 0, 1)
    # Ranked by other samples, so that the mean is the true drop; its standard error is about 0.002.
    assert drops.mean(axis=0) == pytest.approx([0.03, 0.03], abs=0.012)
    assert (errors.mean(axis=0) / drops.std(axis=0)).tolist() == pytest.approx([1.05, 1.05], abs=0.25)


def test_unpaired_models_at_the_limit_rarely_fail():
    rates = np.linspace(0.9, 0.6, 9)
    failed = sum(
        not gate(*other_samples(seed, rates, rates - 0.03, 40, 30), max_class_drop=3, max_group_drop={"hard": 3},
                 unpaired=True).passed
        for seed in range(25)
    )  # fmt: skip
    assert failed <= stats.binom.ppf(0.999, 25, 0.05)


def test_bounds_of_drops_that_cannot_be_shown_are_saved(tmp_path):
    targets = np.arange(6)
    before = Audit.from_predictions(targets=targets, predictions=np.roll(targets, 1))
    result = gate(before, Audit.from_predictions(targets=targets, predictions=targets), max_group_drop={"hard": 1})
    assert result.passed
    result.save(tmp_path / "gate.json")
    assert GateResult.load(tmp_path / "gate.json") == result
