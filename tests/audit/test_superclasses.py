import numpy as np
import pytest

from classgap.audit import Audit, AuditSettings
from classgap.audit.io.hierarchy import check_superclasses

QUICK = AuditSettings(map="none", n_resamples=20)
NAMES = ["cat", "dog", "owl", "car", "bus", "oak"]
SUPER = {"animal": ["cat", "dog", "owl"], "vehicle": ["car", "bus"]}
TREE = {"cat": "pet", "dog": "pet", "pet": "animal", "owl": "animal", "car": "vehicle", "bus": "vehicle"}
TREE |= {"animal": "thing", "vehicle": "thing"}


def drawn(seed=0, each=50):
    rng = np.random.default_rng(seed)
    targets = np.repeat(np.arange(6), each)
    wrong = rng.random(len(targets)) < 0.4
    return targets, np.where(wrong, rng.integers(0, 6, len(targets)), targets)


def audit_of(**given):
    targets, predictions = drawn()
    audit = Audit.from_predictions(targets=targets, predictions=predictions, class_names=NAMES, settings=QUICK, **given)
    return targets, predictions, audit


def slow_level(first, second):
    """Climb one parent at a time from both sides."""
    above = {second}
    while second in TREE:
        second = TREE[second]
        above.add(second)
    level = 0
    while first not in above and first in TREE:
        first, level = TREE[first], level + 1
    return max(1, level if first in above else level + 1)


def test_counts_equal_a_loop():
    targets, predictions, audit = audit_of(superclasses=SUPER)
    parent = {name: title for title, members in SUPER.items() for name in members}
    within = dict.fromkeys(NAMES, 0)
    outside = dict.fromkeys(NAMES, 0)
    for t, p in zip(targets.tolist(), predictions.tolist(), strict=True):
        if t != p:
            same = NAMES[t] in parent and parent[NAMES[t]] == parent.get(NAMES[p])
            (within if same else outside)[NAMES[t]] += 1
    found = audit.superclasses
    assert {entry.name: entry.within for entry in found.classes} == within
    assert {entry.name: entry.outside for entry in found.classes} == outside
    assert within["oak"] == 0 < outside["oak"]
    assert found.within == sum(within.values())
    assert found.errors == sum(within.values()) + sum(outside.values())
    assert found.accuracy == pytest.approx(1 - sum(outside.values()) / len(targets))
    assert [entry.accuracy for entry in found.classes] == pytest.approx([1 - outside[name] / 50 for name in NAMES])
    animal = next(group for group in found.groups if group.name == "animal")
    assert (animal.classes, animal.support) == (3, 150)
    assert animal.within == sum(within[name] for name in SUPER["animal"])
    chance = sum((within[n] + outside[n]) * (len(SUPER[parent[n]]) - 1 if n in parent else 0) / 5 for n in NAMES)
    assert found.expected_by_chance == pytest.approx(chance / found.errors)
    assert (found.levels, found.mean_level) == (None, None)
    assert any(notice.code == "no-superclass" for notice in audit.notices)
    assert Audit.from_dict(audit.to_dict()) == audit


def test_levels_equal_a_slow_climb():
    targets, predictions, audit = audit_of(hierarchy=TREE)
    wrong = targets != predictions
    levels = [slow_level(NAMES[t], NAMES[p]) for t, p in zip(targets[wrong], predictions[wrong], strict=True)]
    found = audit.superclasses
    assert found.levels == {level: levels.count(level) for level in sorted(set(levels))}
    assert found.mean_level == pytest.approx(np.mean(levels))
    for k, entry in enumerate(found.classes):
        own = [level for level, t in zip(levels, targets[wrong], strict=True) if t == k]
        assert entry.mean_level == pytest.approx(np.mean(own))
    assert [entry.superclass for entry in found.classes] == ["pet", "pet", "animal", "vehicle", "vehicle", None]
    assert Audit.from_dict(audit.to_dict()) == audit


def test_ancestors_and_parents_are_the_same_hierarchy():
    paths = check_superclasses(None, TREE, NAMES).paths
    lists = {path[0]: list(path[1:]) for path in paths if len(path) > 1}
    assert check_superclasses(None, lists, NAMES).paths == paths
    assert check_superclasses(None, {0: "pet", **{k: v for k, v in TREE.items() if k != "cat"}}, NAMES).paths == paths


def test_level_1_is_named_after_all_classes_under_the_parent():
    """In an uneven hierarchy, the parent of a class has classes at several depths."""
    tree = {"owl": "animal", "cat": "pet", "pet": "animal", "oak": "plant"}
    audit = Audit.from_predictions(
        targets=[0, 0, 1, 2],
        predictions=[1, 2, 1, 2],
        class_names=["owl", "cat", "oak"],
        settings=QUICK,
        hierarchy=tree,
    )
    assert audit.superclasses.levels == {1: 1, 2: 1}  # owl as cat, which is a pet; owl as oak
    text = " ".join(str(audit).split())
    assert "1 (under the same parent)" in text
    assert "levels away in the hierarchy; 1 is under the same parent." in text


def test_superclasses_define_within_and_the_hierarchy_the_levels():
    _, _, both = audit_of(superclasses=SUPER, hierarchy=TREE)
    _, _, one = audit_of(superclasses=SUPER)
    assert both.superclasses.within == one.superclasses.within
    assert both.superclasses.levels


def test_one_name_per_class():
    names = ["animal", "animal", "animal", "vehicle", "vehicle", "plant"]
    assert check_superclasses(names, None, NAMES).parents == tuple(names)
    assert check_superclasses(names, None, NAMES).notices == ()


def test_per_class_columns_reach_pandas():
    pytest.importorskip("pandas")
    _, _, audit = audit_of(superclasses=SUPER)
    frame = audit.to_pandas()
    assert frame.loc["cat", "superclass"] == "animal"
    assert frame["errors_within_superclass"].sum() == audit.superclasses.within


@pytest.mark.parametrize(
    ("superclasses", "hierarchy", "facts"),
    [
        ({"animal": ["cow"]}, None, ("superclasses: 'animal' has the unknown class 'cow'", "'cow'")),
        ({"animal": ["cat"], "pet": ["cat"]}, None, ("'cat'", "'animal'", "'pet'")),
        (["animal"], None, ("superclasses", "6")),
        (None, {"cow": "animal"}, ("hierarchy", "'cat'")),
        (None, {"cat": "pet", "pet": "cat"}, ("hierarchy", "cycles", "'cat'")),
        (None, {"cat": 3}, ("hierarchy['cat']", "3")),
        (None, {"cat": ["pet", 3]}, ("hierarchy['cat']",)),
        (None, ["cat"], ("hierarchy", "['cat']")),
    ],
)
def test_invalid_files_are_named(superclasses, hierarchy, facts):
    with pytest.raises(ValueError, match=r"superclasses|hierarchy") as error:
        check_superclasses(superclasses, hierarchy, NAMES)
    assert all(fact in str(error.value) for fact in facts), error.value
