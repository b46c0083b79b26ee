"""Samples and classes of two sides are matched; the rest is left out and counted."""

import numpy as np
import pytest

from classgap.audit import Audit, AuditDiff, AuditSettings, compare, gate

QUICK = AuditSettings(n_resamples=50)
RNG = np.random.default_rng(0)
TARGETS = np.repeat(np.arange(4), 25)
NAMES = ("cat", "dog", "cow", "yak")
IDS = np.arange(100) * 3 + 7


def side(rows, name, *, names=NAMES, seed=0, index=True, ids=IDS):
    """Audit of some rows of the test set, in random order, with the classes in their own order."""
    rng = np.random.default_rng(seed)
    right = rng.random(100) < 0.7
    labels = np.array(names)[TARGETS]
    predicted = np.where(right, labels, np.array(names)[(TARGETS + 1) % 4])
    rows = rng.permutation(rows) if index else rows
    given = {"index": ids[rows]} if index else {}
    audit = Audit.from_predictions(
        predictions=predicted[rows], targets=labels[rows], name=name, settings=QUICK, **given
    )
    return audit, right


def test_common_samples_are_compared_and_the_others_counted():
    (before, a), (after, b) = side(np.arange(80), "v1", seed=1), side(np.arange(10, 100), "v2", seed=2)
    diff = before.diff(after)
    assert (diff.n_samples, diff.only_before, diff.only_after) == (70, 10, 20)
    common = np.arange(10, 80)
    for entry in diff.classes:
        own = common[np.array(NAMES)[TARGETS[common]] == entry.name]
        assert entry.support == len(own)
        if len(own):
            assert entry.before == pytest.approx(a[own].mean())
            assert (entry.fixed, entry.broken) == ((~a & b)[own].sum(), (a & ~b)[own].sum())
    assert diff.overall.change == pytest.approx(b[common].mean() - a[common].mean())


def test_thirds_are_ranked_by_the_compared_samples():
    before, a = side(np.arange(100), "v1", seed=1)
    after, _ = side(np.arange(15, 100), "v2", seed=2)
    rates = {name: a[15:][TARGETS[15:] == k].mean() for k, name in enumerate(NAMES)}
    assert before.diff(after).groups["hard"].members == (min(rates, key=lambda name: rates[name]),)


def test_string_ids_match_and_the_saved_audit_keeps_them(tmp_path):
    files = np.array([f"val/{i}.png" for i in range(100)])
    (before, _), (after, _) = (
        side(np.arange(90), "v1", seed=1, ids=files),
        side(np.arange(100), "v2", seed=2, ids=files),
    )
    before.save(tmp_path / "v1.json")
    diff = compare(tmp_path / "v1.json", after)
    assert (diff.n_samples, diff.only_before, diff.only_after) == (90, 0, 10)
    numbers, _ = side(np.arange(100), "v3", ids=np.arange(100))
    texts, _ = side(np.arange(100), "v4", ids=np.arange(100).astype(str))
    assert numbers.diff(texts).n_samples == 100


def test_added_removed_and_renamed_classes_are_listed():
    before, _ = side(np.arange(100), "v1", seed=1, names=("cat", "dog", "cow", "ox"))
    after, _ = side(np.arange(100), "v2", seed=2, names=("kitty", "dog", "cow", "yak"))
    diff = AuditDiff.from_audits(before, after, rename={"cat": "kitty"})
    assert (diff.added, diff.removed, diff.renamed) == (("yak",), ("ox",), {"cat": "kitty"})
    assert {entry.name for entry in diff.classes} == {"kitty", "dog", "cow"}
    assert [entry.index for entry in diff.classes] == [0, 1, 2]
    assert (diff.n_samples, diff.only_before, diff.only_after) == (75, 25, 25)
    assert {name for group in diff.groups.values() for name in group.members} == {"kitty", "dog", "cow"}
    assert AuditDiff.from_dict(diff.to_dict()) == diff


def test_a_sample_that_moved_to_a_new_class_is_left_out():
    labels = np.array(["cat"] * 10 + ["dog"] * 10)
    moved = labels.copy()
    moved[:4] = "pup"
    before = Audit.from_predictions(predictions=labels, targets=labels, index=np.arange(20))
    after = Audit.from_predictions(predictions=moved, targets=moved, index=np.arange(20))
    diff = before.diff(after)
    assert (diff.added, diff.n_samples, diff.only_before, diff.only_after) == (("pup",), 16, 4, 4)


@pytest.mark.parametrize("unpaired", [False, True])
def test_classes_that_lost_all_their_samples_are_listed_although_their_names_are_kept(unpaired):
    before, _ = side(np.arange(100), "v1", seed=1)
    after, _ = side(np.flatnonzero(TARGETS != 2), "v2", seed=2, names=NAMES)
    assert set(after.class_names) == set(before.class_names)  # as predictions
    diff, back = (AuditDiff.from_audits(*pair, unpaired=unpaired) for pair in ((before, after), (after, before)))
    assert (diff.added, diff.removed) == ((), (NAMES[2],))
    assert (back.added, back.removed) == ((NAMES[2],), ())
    assert f"Removed: 1 class ({NAMES[2]})." in str(diff)
    checked = gate(before, after, max_class_drop=3, unpaired=unpaired)
    assert checked.removed == (NAMES[2],)
    assert f"Removed: 1 class ({NAMES[2]})." in str(checked)


INVALID = {
    "unknown old": ({"cow": "dog", "mouse": "cat"}, "'mouse' is not a class of 'v1'"),
    "unknown new": ({"cow": "mouse"}, "'mouse' is not a class of 'v2'"),
    "two in one": ({"cow": "dog"}, "two classes named 'dog'"),
}


@pytest.mark.parametrize(("rename", "reason"), INVALID.values(), ids=INVALID)
def test_invalid_renames_are_rejected(rename, reason):
    before, after = side(np.arange(100), "v1")[0], side(np.arange(100), "v2")[0]
    with pytest.raises(ValueError, match=reason):
        AuditDiff.from_audits(before, after, rename=rename)


def test_swapped_names_can_be_renamed():
    before, _ = side(np.arange(100), "v1", names=("dog", "cat", "cow", "yak"))
    after, _ = side(np.arange(100), "v2")
    diff = AuditDiff.from_audits(before, after, rename={"cat": "dog", "dog": "cat"})
    assert diff.n_samples == 100


def test_sizes_without_ids_are_rejected_with_the_ways_out():
    before, after = side(np.arange(90), "v1", index=False)[0], side(np.arange(100), "v2", index=False)[0]
    with pytest.raises(ValueError, match="90 and 100 samples") as caught:
        before.diff(after)
    assert "--key" in str(caught.value)
    assert "--unpaired" in str(caught.value)


@pytest.mark.parametrize(
    ("ids", "shown"), [(IDS, "28"), (np.array([f"val/{i}.png" for i in range(100)]), "'val/7.png'")]
)
def test_samples_with_other_labels_are_named_by_their_ids(ids, shown, tmp_path):
    labels = np.array(NAMES)[TARGETS]
    relabeled = labels.copy()
    relabeled[7] = "dog"
    old, new = (
        Audit.from_predictions(predictions=each, targets=each, index=ids, name=name)
        for each, name in ((labels, "v1"), (relabeled, "v2"))
    )
    old.save(tmp_path / "v1.json")
    text = rf"the sample with id {shown} has different labels \('cat' and 'dog'\): give both the same labels; if "
    with pytest.raises(
        ValueError, match=rf"{text}labels were corrected, compare them with unpaired=True \(--unpaired\)"
    ):
        compare(tmp_path / "v1.json", new)
    with pytest.raises(ValueError, match=rf"{text}labels were corrected, gate them with unpaired=True \(--unpaired\)"):
        gate(old, new, max_class_drop=3)
    relabeled[8] = "dog"
    other = Audit.from_predictions(predictions=relabeled, targets=relabeled, index=ids)
    with pytest.raises(ValueError, match=f"2 samples have different labels, the first with id {shown}"):
        compare(old, other)
    assert compare(old, other, unpaired=True).n_samples == 100


def test_ids_with_two_targets_and_empty_ids_are_rejected():
    for ids, reason in ((["a", "a"], "sample ids must be unique"), (["a", ""], "must not be empty")):
        with pytest.raises(ValueError, match=reason):
            Audit.from_predictions(predictions=[0, 1], targets=[0, 1], index=ids)
