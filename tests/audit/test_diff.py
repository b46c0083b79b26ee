"""Comparisons: loops over classes, scipy, and invalid pairs."""

import numpy as np
import pytest
from scipy import stats

from classgap.audit import Audit, AuditDiff, AuditSettings
from classgap.audit.serialization import write_json
from classgap.audit.stats.matching import match_samples
from classgap.audit.stats.pairing import count_pairs

CLASSES, EACH = 6, 80
TARGETS = np.repeat(np.arange(CLASSES), EACH)
QUICK = AuditSettings(n_resamples=100)


def audit(accuracies, seed, name="run", **given):
    rng = np.random.default_rng(seed)
    right = rng.random(len(TARGETS)) < np.asarray(accuracies)[TARGETS]
    predictions = np.where(right, TARGETS, (TARGETS + 1) % CLASSES)
    return Audit.from_predictions(predictions=predictions, targets=TARGETS, name=name, settings=QUICK, **given)


BEFORE = [0.9, 0.85, 0.8, 0.6, 0.5, 0.3]
AFTER = [0.6, 0.85, 0.8, 0.65, 0.6, 0.7]


@pytest.fixture(scope="module")
def sides():
    return audit(BEFORE, 0, "plain"), audit(AFTER, 1, "fixed")


def test_classes_against_a_loop(sides):
    before, after = sides
    diff = before.diff(after)
    p_values = []
    for k, entry in enumerate(diff.classes):
        own = k == TARGETS
        a, b = before.samples.correct[own], after.samples.correct[own]
        assert (entry.fixed, entry.broken) == ((~a & b).sum(), (a & ~b).sum())
        assert entry.change == pytest.approx(b.mean() - a.mean())
        assert entry.interval.low <= entry.change <= entry.interval.high
        p_values.append(stats.binomtest(entry.fixed, entry.fixed + entry.broken).pvalue)
    assert [entry.p_value for entry in diff.classes] == pytest.approx(p_values)
    significant = []
    for step, k in enumerate(np.argsort(p_values)):  # Holm, step by step
        if p_values[k] >= 0.05 / (CLASSES - step):
            break
        significant.append(diff.classes[k])
    by_size = sorted(significant, key=lambda entry: -abs(entry.change))
    assert diff.gained == tuple(entry.name for entry in by_size if entry.change > 0)
    assert diff.regressed == tuple(entry.name for entry in by_size if entry.change < 0)
    assert "5" in diff.gained
    assert diff.regressed == ("0",)


def test_figures_are_those_of_the_two_audits(sides):
    before, after = sides
    diff = before.diff(after)
    assert diff.overall.change == pytest.approx(after.overall.accuracy - before.overall.accuracy)
    assert diff.balanced.before == pytest.approx(before.overall.balanced_accuracy)
    for name in ("easy", "medium", "hard"):
        members = [int(member) for member in before.groups[name].members]
        kept = np.mean([after.classes[k].accuracy for k in members])
        assert diff.groups[name].change.before == pytest.approx(before.groups[name].accuracy)
        assert diff.groups[name].change.after == pytest.approx(kept)
        assert diff.own_groups[name].change.after == pytest.approx(after.groups[name].accuracy)
    assert diff.gap["own_easy_hard"].change == pytest.approx(after.gap.easy_hard - before.gap.easy_hard)
    assert diff.gap["easy_hard"].before == pytest.approx(before.gap.easy_hard)
    for name in ("best_worst", "worst_class", "worst_tenth", "std", "gini"):
        assert diff.gap[name].before == pytest.approx(getattr(before.gap, name))
        assert diff.gap[name].after == pytest.approx(getattr(after.gap, name))
        assert diff.gap[name].interval.low <= diff.gap[name].change <= diff.gap[name].interval.high


def test_it_is_shown_in_one_line(sides):
    before, after = sides
    rates = [[side.samples.correct[k == TARGETS].mean() for k in range(CLASSES)] for side in sides]
    hard = np.argsort(rates[0])[:2]
    overall = " to ".join(f"{np.mean(side):.3f}" for side in rates)  # all classes have the same size
    thirds = " to ".join(f"{np.mean([side[k] for k in hard]):.3f}" for side in rates)
    counts = [
        sum(entry.verdict == verdict for entry in before.diff(after).classes) for verdict in ("gained", "regressed")
    ]
    text = f"accuracy {overall}, hard third {thirds}, {counts[0]} gained, {counts[1]} regressed>"
    start = f"<AuditDiff 'plain' to 'fixed': 6 classes, {len(TARGETS)} samples, "
    assert repr(before.diff(after)) == start + text
    assert repr(AuditDiff.from_audits([before, before], [after, after])).startswith(
        f"{start}2 runs per side, accuracy {overall}"
    )


def test_paired_interval_is_that_of_resampled_pairs(sides):
    before, after = sides
    got = AuditDiff.from_audits(before, after, n_resamples=4000).overall.interval
    rng = np.random.default_rng(5)
    difference = after.samples.correct.astype(float) - before.samples.correct
    rows = np.concatenate([k * EACH + rng.integers(0, EACH, (4000, EACH)) for k in range(CLASSES)], axis=1)
    expected = np.quantile(difference[rows].mean(axis=1), [0.025, 0.975])
    assert got == pytest.approx(tuple(expected), abs=0.006)


def test_no_change_is_said_to_be_none(sides):
    same = sides[0].diff(sides[0])
    assert same.overall.change == 0
    assert (same.gained, same.regressed) == ((), ())
    assert {entry.verdict for entry in same.classes} == {"unchanged"}
    assert not same.overall.significant


def test_noise_rarely_makes_a_verdict():
    diffs = [audit(BEFORE, seed).diff(audit(BEFORE, 100 + seed)) for seed in range(40)]
    false = sum(bool(diff.gained or diff.regressed) for diff in diffs)
    assert false <= 6  # Holm keeps it below one in twenty; 40 trials allow some luck


def test_thirds_of_equal_models_move_by_chance_and_that_is_said():
    rng = np.random.default_rng(0)
    targets = np.repeat(np.arange(60), 30)
    claimed, naive, moved, chance = 0, 0, [], []
    for _ in range(20):
        runs = [np.where(rng.random(len(targets)) < 0.7, targets, (targets + 1) % 60) for _ in range(2)]
        before, after = (Audit.from_predictions(predictions=run, targets=targets, settings=QUICK) for run in runs)
        diff = AuditDiff.from_audits(before, after, n_resamples=200)
        claimed += diff.groups["hard"].change.significant
        moved.append(diff.groups["hard"].change.change)
        chance.append(diff.groups["hard"].change.expected_by_chance)
        naive += diff.groups["hard"].change.interval.low > 0
    assert np.mean(moved) == pytest.approx(np.mean(chance), abs=0.02)
    assert np.mean(moved) > 0.05
    assert naive >= 15  # times out of 20 the interval alone would claim a gain that is not there
    assert claimed <= 2


def test_random_swaps_against_swapping_samples(sides):
    counts = count_pairs(match_samples([sides[0]], [sides[1]]))
    before, after = counts.swap_sides(3000, np.random.default_rng(0))
    rng = np.random.default_rng(1)
    a, b = sides[0].samples.correct, sides[1].samples.correct
    own = TARGETS == 5
    swap = rng.random((3000, EACH)) < 0.5
    expected = np.where(swap, b[own], a[own]).mean(axis=1)
    np.testing.assert_allclose((before + after).std(axis=0), 0, atol=1e-12)  # together they stay what they are
    assert before[:, 5].mean() == pytest.approx(expected.mean(), abs=0.005)
    assert before[:, 5].std() == pytest.approx(expected.std(), rel=0.08)


def test_seeds_are_averaged_and_tested():
    befores = [audit(BEFORE, seed) for seed in range(4)]
    afters = [audit(AFTER, 10 + seed) for seed in range(4)]
    diff = AuditDiff.from_audits(befores, afters)
    a = np.array([run.overall.accuracy for run in befores])
    b = np.array([run.overall.accuracy for run in afters])
    figure = diff.over_runs["accuracy"]
    assert figure.before_mean == pytest.approx(a.mean())
    assert figure.after_std == pytest.approx(b.std(ddof=1))
    assert figure.p_value == pytest.approx(stats.ttest_rel(b, a).pvalue)
    assert diff.overall.change == pytest.approx((b - a).mean())
    assert diff.over_runs["easy_hard"].after_mean == pytest.approx(np.mean([run.gap.easy_hard for run in afters]))
    correct_before = np.mean([run.samples.correct for run in befores], axis=0)
    correct_after = np.mean([run.samples.correct for run in afters], axis=0)
    own = TARGETS == 5
    assert diff.classes[5].fixed == (correct_after[own] > correct_before[own]).sum()
    assert diff.classes[5].broken == (correct_after[own] < correct_before[own]).sum()
    assert diff.classes[5].verdict == "gained"
    assert diff.n_runs == 4
    ranked = sorted(range(CLASSES), key=lambda k: -np.mean([run.classes[k].accuracy for run in befores]))
    assert diff.groups["easy"].members == tuple(str(k) for k in ranked[:2])


def of_right(right, targets=TARGETS, classes=CLASSES):
    predictions = np.where(right, targets, (targets + 1) % classes)
    return Audit.from_predictions(predictions=predictions, targets=targets, settings=QUICK)


def test_runs_that_vary_are_not_taken_for_a_change():
    """Accuracies of classes move from run to run, and nothing is better: test samples alone would call it certain."""
    rng = np.random.default_rng(1)
    targets = np.repeat(np.arange(10), 1000)

    def run():
        accuracy = 0.8 + rng.normal(0, 0.02, 10)
        return of_right(rng.random(10_000) < accuracy[targets], targets, 10)

    significant = of_classes = alone = 0
    for _ in range(20):
        diff = AuditDiff.from_audits([run() for _ in range(3)], [run() for _ in range(3)], n_resamples=200)
        significant += diff.overall.significant
        alone += diff.overall.interval.low > 0 or diff.overall.interval.high < 0
        of_classes += bool(diff.gained or diff.regressed)
    assert alone >= 4
    assert significant <= 3
    assert of_classes <= 3


def test_over_seeds_a_verdict_has_the_sign_of_the_change():
    targets = np.repeat([0, 1], 100)
    befores, afters = [], []
    for seed in range(3):  # 24 samples are right once more, ten are right three times less
        before, after = np.ones(200, dtype=bool), np.ones(200, dtype=bool)
        before[:24], after[24:34] = seed != 0, False
        befores.append(of_right(before, targets, 2))
        afters.append(of_right(after, targets, 2))
    entry = AuditDiff.from_audits(befores, afters).classes[0]
    assert (entry.fixed, entry.broken) == (24, 10)
    assert entry.change == pytest.approx(-0.02)
    assert entry.verdict == "unclear"


def test_many_classes_of_one_sample_are_no_reason_for_certainty():
    rng = np.random.default_rng(0)
    targets = np.arange(300)
    significant = 0
    for _ in range(20):
        diff = of_right(rng.random(300) < 0.5, targets, 300).diff(of_right(rng.random(300) < 0.5, targets, 300))
        significant += diff.overall.significant + diff.groups["hard"].change.significant
    assert significant <= 4


def test_thirds_of_several_seeds_rank_their_mean():
    rising, falling = np.linspace(0.2, 0.9, CLASSES), np.linspace(0.9, 0.2, CLASSES)
    befores = [audit(falling, 0), audit(rising, 1), audit(rising, 2)]  # the first seed is the odd one out
    diff = AuditDiff.from_audits(befores, befores)
    assert set(befores[0].groups["easy"].members) == {"0", "1"}
    assert set(diff.groups["easy"].members) == {"4", "5"}
    assert diff.classes[5].group == "easy"


def test_groups_other_than_thirds_are_followed():
    counts = [500, 500, 50, 50, 5, 5]
    before = audit(BEFORE, 0, train_counts=counts, groups={"odd": [1, 3, 5]})
    diff = before.diff(audit(AFTER, 1))
    assert diff.groups["tail"].members == ("4", "5")
    assert diff.groups["odd"].kind == "given"


def test_unseen_classes_stay_unseen():
    names = [*map(str, range(CLASSES)), "never"]
    before, after = (audit([*accuracy, 0], 0, class_names=names) for accuracy in (BEFORE, AFTER))
    entry = before.diff(after).classes[6]
    assert (entry.status, entry.change, entry.p_value) == ("unseen", None, None)


def test_groups_of_an_audit_and_of_a_comparison_have_the_same_classes():
    audit = Audit.from_predictions(
        targets=[0, 0, 1, 1],
        predictions=[0, 1, 1, 1],
        class_names=["cat", "dog", "yak"],
        train_counts=[100, 10, 5],  # yak is in the tail and has no test samples
        groups={"cattle": ["dog", "yak"]},
    )
    assert (audit.groups["tail"].members, audit.groups["tail"].unseen) == (("dog",), 1)
    diff = audit.diff(audit)
    assert {name: group.members for name, group in diff.groups.items()} == {
        name: group.members for name, group in audit.groups.items()
    }


def relabel(targets, **given):
    return Audit.from_predictions(predictions=targets, targets=targets, name="other", settings=QUICK, **given)


INVALID = {
    "fewer samples": (lambda: relabel(TARGETS[:-1]), "480 and 479 samples"),
    "other labels": (lambda: relabel(np.roll(TARGETS, 1)), "different labels, the first at position 0"),
    "other names": (lambda: relabel(TARGETS, class_names=list("abcdef")), "class names"),
    "other order": (lambda: relabel(TARGETS, class_names=list("102345")), "different labels"),
}


@pytest.mark.parametrize(("other", "reason"), INVALID.values(), ids=INVALID)
def test_other_test_sets_are_rejected_with_the_reason(sides, other, reason):
    with pytest.raises(ValueError, match=reason) as caught:
        sides[0].diff(other())
    assert "'plain' and 'other' cannot be compared" in str(caught.value)


def test_other_index_values_are_rejected():
    index = np.arange(len(TARGETS))
    with pytest.raises(ValueError, match="no sample in common"):
        relabel(TARGETS, index=index).diff(relabel(TARGETS, index=index + len(index)))
    with pytest.raises(ValueError, match="5 samples have different labels"):
        relabel(TARGETS, index=index).diff(relabel(TARGETS, index=index + 1))


def test_unpaired_seeds_are_rejected(sides):
    with pytest.raises(ValueError, match="got 1 and 2"):
        AuditDiff.from_audits([sides[0]], [sides[1], sides[1]])


def test_files_that_number_their_classes_differently_can_be_compared():
    # A class that is only ever predicted is known to the first alone.
    first = Audit.from_predictions(predictions=["a", "c", "b"], targets=["a", "b", "b"])
    second = Audit.from_predictions(predictions=["a", "b", "b"], targets=["a", "b", "b"])
    counts = count_pairs(match_samples([first], [second]))
    assert counts.names == ("a", "b")
    assert (counts.fixed_U.tolist(), counts.broken_U.tolist()) == ([0, 1], [0, 0])


def test_round_trip(sides, tmp_path):
    diff = sides[0].diff(sides[1])
    diff.save(tmp_path / "diff.json")
    assert "SCHEMA" not in diff.to_dict()
    assert AuditDiff.load(tmp_path / "diff.json") == AuditDiff.from_dict(diff.to_dict()) == diff
    sides[0].save(tmp_path / "audit.json")
    with pytest.raises(ValueError, match="not a saved comparison"):
        AuditDiff.load(tmp_path / "audit.json")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"schema": 1}, "schema must be 3, got 1"),
        ({"gained": ["nobody"]}, "gained does not match"),
        ({"n_runs": "two"}, "n_runs must be .* got 'two'"),
    ],
)
def test_a_damaged_comparison_is_rejected_with_its_name(sides, tmp_path, change, text):
    write_json(tmp_path / "diff.json", sides[0].diff(sides[1]).to_dict() | change)
    with pytest.raises(ValueError, match=rf"diff\.json: .*{text}"):
        AuditDiff.load(tmp_path / "diff.json")
