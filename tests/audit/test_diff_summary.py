"""Summary of a comparison."""

from classgap.audit.diff_results import Change, ClassChange, GroupChange
from classgap.audit.results import Interval
from classgap.audit.summary import summary


def moved(before, after, low, high, expected_by_chance=None):
    return Change(before, after, after - before, Interval(low, high), expected_by_chance)


def one(name, change, verdict):
    return ClassChange(0, name, "ok", 50, 0.5, 0.5 + change, change, None, 9, 1, 0.01, 0.02, verdict, "hard")


def groups(hard):
    easy = moved(0.95, 0.94, -0.03, 0.01)
    return {name: GroupChange(name, "thirds", part, 1, 1, ("a",)) for name, part in (("easy", easy), ("hard", hard))}


CLASSES = [
    one("cat", 0.2, "gained"),
    one("dog", 0.1, "gained"),
    one("cow", -0.15, "regressed"),
    one("ant", 0.0, "unclear"),
]


def test_significant_changes():
    text = summary(
        moved(0.8, 0.85, 0.02, 0.08),
        groups(moved(0.4, 0.5, 0.05, 0.15)),
        {"easy_hard": moved(0.55, 0.44, -0.2, -0.05)},
        CLASSES,
        runs_per_side=1,
    )
    assert "rose from 80.0 % to 85.0 %" in text
    assert "hard third gained 10.0 points" in text
    assert "easy third did not change significantly (−1.0" in text
    assert "narrowed from 55.0 to 44.0 points" in text
    assert "2 of 4 classes got significantly better (cat +20.0, dog +10.0)" in text
    assert "1 of 4 classes got significantly worse (cow −15.0)" in text


def test_change_expected_by_chance_is_not_significant():
    hard = moved(0.4, 0.5, 0.05, 0.15, expected_by_chance=0.08)
    text = summary(moved(0.8, 0.8, -0.1, 0.1), groups(hard), {"easy_hard": hard}, CLASSES[3:], runs_per_side=3)
    assert "mean of 3 runs" in text
    assert "80.0 % → 80.0 %" in text
    assert "Neither the hard third (+10.0 points)" in text
    assert text.endswith("No class changed significantly.")
