"""Summary of a comparison."""

from dataclasses import replace

import pytest

from classgap.audit import AuditDiff
from classgap.audit.diff_results import Change, GroupChange
from classgap.audit.results import Interval
from classgap.report import diff_summary


def change(before, after, low, high, expected_by_chance=None):
    return Change(before, after, after - before, Interval(low, high), expected_by_chance)


@pytest.fixture
def made(diff: AuditDiff):
    def make(overall, hard, gap, verdicts, *, n_runs=1):
        easy = change(0.95, 0.94, -0.03, 0.01)
        template = next(entry for entry in diff.classes if entry.status == "ok")
        classes = [replace(template, name=n, change=c, verdict=v) for n, c, v in verdicts]
        groups = {
            name: GroupChange(name, "thirds", part, 1, 1, ("a",)) for name, part in (("easy", easy), ("hard", hard))
        }
        return replace(
            diff,
            overall=overall,
            groups=groups,
            gap={"easy_hard": gap},
            classes=tuple(classes),
            n_runs=n_runs,
        )

    return make


def test_significant_changes(made):
    text = diff_summary(
        made(
            change(0.8, 0.85, 0.02, 0.08),
            change(0.4, 0.5, 0.05, 0.15),
            change(0.55, 0.44, -0.2, -0.05),
            [("cat", 0.2, "gained"), ("dog", 0.1, "gained"), ("cow", -0.15, "regressed"), ("ant", 0.0, "unclear")],
        )
    )
    assert "rose from 80.0 % to 85.0 %" in text
    assert "hard third gained 10.0 points" in text
    assert "easy third did not change significantly (−1.0" in text
    assert "narrowed from 55.0 to 44.0 points" in text
    assert "2 of 4 classes got significantly better (cat +20.0, dog +10.0)" in text
    assert "1 of 4 classes got significantly worse (cow −15.0)" in text


def test_a_change_expected_by_chance_is_not_significant(made):
    hard = change(0.4, 0.5, 0.05, 0.15, expected_by_chance=0.08)
    text = diff_summary(made(change(0.8, 0.8, -0.1, 0.1), hard, hard, [("ant", 0.0, "unclear")], n_runs=3))
    assert "mean of 3 runs" in text
    assert "80.0 % → 80.0 %" in text
    assert "Neither the hard third (+10.0 points)" in text
    assert text.endswith("No class changed significantly.")


def test_summary_of_a_comparison_with_itself(audit):
    text = diff_summary(audit.diff(audit))
    assert "did not change significantly" in text
    assert "No class changed significantly" in text


def test_summary_is_one_paragraph(diff: AuditDiff):
    text = diff_summary(diff)
    assert text.startswith("Accuracy")
    assert "\n" not in text
