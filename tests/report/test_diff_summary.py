"""Summary of a comparison."""

import re
from dataclasses import replace

import pytest

from classgap.audit import Audit, AuditDiff
from classgap.audit.diff_results import Change, GroupChange
from classgap.audit.results import Interval
from classgap.report import diff_summary
from classgap.report.summary import diff_headline


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
    assert "narrowed from 55.0 to 44.0 points" in text
    assert "Largest significant gains: cat +20.0, dog +10.0 points." in text
    assert "Largest significant loss: cow −15.0 points." in text


def test_a_change_expected_by_chance_is_not_significant(made):
    hard = change(0.4, 0.5, 0.05, 0.15, expected_by_chance=0.08)
    text = diff_summary(made(change(0.8, 0.8, -0.1, 0.1), hard, hard, [("ant", 0.0, "unclear")], n_runs=3))
    assert "mean of 3 runs" in text
    assert "80.0 % → 80.0 %" in text
    assert "easy and the hard third did not change significantly (40.0 → 50.0 points)" in text
    assert "Largest" not in text


def test_summary_of_a_comparison_with_itself(audit):
    text = diff_summary(audit.diff(audit))
    assert "did not change significantly" in text
    assert "Largest" not in text


ONE_CLASS = Audit.from_predictions(predictions=[0] * 9 + [1], targets=[0] * 10, class_names=["only", "unseen"])


@pytest.mark.parametrize("show", [str, AuditDiff._repr_html_])
def test_no_fact_of_the_headline_is_repeated_below_it(diff: AuditDiff, audit: Audit, show):
    for each in (diff, audit.diff(audit), ONE_CLASS.diff(ONE_CLASS)):
        text = " ".join(show(each).split())
        facts = [part for part in re.split(r"[.;] |[.;]$", diff_headline(each)) if part]
        assert len(facts) >= 2
        assert [fact for fact in facts if text.count(fact) != 1] == []
        assert "third lost" not in text
        assert "third gained" not in text
        assert not re.search(r"\bof [\d,]+ classes got\b|No class got", text)
    assert diff_summary(ONE_CLASS.diff(ONE_CLASS)) == ""


def test_summary_is_one_paragraph(diff: AuditDiff):
    text = diff_summary(diff)
    assert text.startswith("Accuracy")
    assert "\n" not in text
