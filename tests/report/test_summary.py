"""Headlines claim no more than the numbers support."""

import io

import numpy as np
import pytest

from classgap.audit import Audit, AuditDiff
from classgap.audit.settings import AuditSettings
from classgap.report import print_audit, print_diff, render_html
from classgap.report.diff_summary import diff_summary
from classgap.report.formatting import format_percent, format_points
from classgap.report.summary import diff_headline, headline, summarize_audit

CLASSES, SAMPLES = 60, 30
TARGETS = np.repeat(np.arange(CLASSES), SAMPLES)
FAST = AuditSettings(n_resamples=100, map="none")


def simulate(accuracy_K: np.ndarray, rng: np.random.Generator) -> Audit:
    """Audit independent predictions with the given probability of being correct for each class."""
    correct = rng.random(len(TARGETS)) < accuracy_K[TARGETS]
    return Audit.from_predictions(
        predictions=np.where(correct, TARGETS, (TARGETS + 1) % CLASSES), targets=TARGETS, settings=FAST
    )


def compare(before_K: np.ndarray, after_K: np.ndarray, seed: int = 0) -> AuditDiff:
    rng = np.random.default_rng(seed)
    return AuditDiff.from_audits(simulate(before_K, rng), simulate(after_K, rng), n_resamples=300)


@pytest.mark.parametrize("seed", range(6))
def test_regression_to_the_mean_is_not_significant(seed: int):
    same = np.full(CLASSES, 0.85)
    diff = compare(same, same, seed)
    gap = diff.gap["easy_hard"]
    assert gap.interval.high < 0  # the trap: the hard classes of the first side look better on any second look
    assert diff_headline(diff).startswith("No significant change in the hard third")
    assert "narrowed" not in diff_summary(diff)
    page = io.StringIO()
    print_diff(diff, page)
    for text in (page.getvalue(), render_html(diff)):
        assert format_points(gap.expected_by_chance) in text


def test_significant_change_is_in_the_headline():
    diff = compare(np.linspace(0.3, 0.95, CLASSES), np.linspace(0.75, 0.95, CLASSES))
    hard, easy = diff.groups["hard"].change, diff.groups["easy"].change
    text = diff_headline(diff)
    assert text.startswith(f"Hard third {format_percent(hard.before)} % → {format_percent(hard.after)} %")
    assert f"({format_points(hard.change)} points); easy third {format_points(easy.change)} points" in text
    assert f"{len(diff.gained)} classes got significantly better, none significantly worse." in text
    assert "gap between the easy and the hard third narrowed" in diff_summary(diff)
    reverse = compare(np.linspace(0.75, 0.95, CLASSES), np.linspace(0.1, 0.95, CLASSES))
    assert "gap between the easy and the hard third widened" in diff_summary(reverse)
    assert f"{len(reverse.regressed)} classes got significantly worse, none significantly better" in diff_headline(
        reverse
    )


def test_gap_that_moves_to_other_classes_is_not_called_narrower():
    up = np.linspace(0.4, 0.95, CLASSES)
    diff = compare(up, np.linspace(0.95, 0.4, CLASSES))
    gap = diff.gap["easy_hard"]
    assert gap.after < 0 < gap.before
    assert f"reversed from {format_percent(gap.before)} to {format_percent(gap.after)} points" in diff_summary(diff)
    steeper = compare(up, np.linspace(1.0, 0.1, CLASSES))
    own = steeper.gap["own_easy_hard"]
    assert own.interval.low > 0
    assert f"widened from {format_percent(own.before)} to {format_percent(own.after)} points" in diff_summary(steeper)


@pytest.mark.parametrize(
    ("hard_after", "course"),
    [
        (37, "reversed from 40.0 to −2.5 points"),
        (36, "narrowed from 40.0 to 0.0 points"),
        (34, "narrowed from 40.0 to 5.0 points"),
    ],
)
def test_gap_is_reversed_only_if_its_sign_changes(hard_after: int, course: str):
    # 36 of 40 samples are correct in 20 easy and 20 medium classes. In 20 hard ones: 20 before, ``hard_after`` after.
    place, hard = np.tile(np.arange(40), CLASSES), np.repeat(np.arange(CLASSES) < 20, 40)
    targets = np.repeat(np.arange(CLASSES), 40)
    sides = [
        Audit.from_predictions(
            predictions=np.where(place < np.where(hard, correct, 36), targets, (targets + 1) % CLASSES),
            targets=targets,
            settings=FAST,
        )
        for correct in (20, hard_after)
    ]
    diff = AuditDiff.from_audits(*sides, n_resamples=300)
    gap = diff.gap["easy_hard"]
    assert gap.before + gap.interval.high > 0  # the interval of the new gap includes 0: the verb follows the estimate
    assert course in diff_summary(diff)


def test_thirds_by_a_baseline_are_named_after_the_baseline():
    rng = np.random.default_rng(0)
    up, down = np.linspace(0.3, 0.95, CLASSES), np.linspace(0.95, 0.3, CLASSES)
    baseline = simulate(up, rng)
    for accuracy_K, expected in (
        (up, "points below those that were easy"),
        (down, "points above those"),
        (np.full(CLASSES, 0.85), "No significant gap"),
    ):
        other = simulate(accuracy_K, rng)
        audit = Audit.from_predictions(
            predictions=other.samples.predictions, targets=TARGETS, rank_by=baseline, settings=FAST
        )
        first, text = headline(audit), " ".join(summarize_audit(audit))
        assert expected in first
        assert "hard for the baseline" in first
        assert "−" not in first
        assert "hard third" not in (first + text).lower()
        ordered = np.sort([entry.accuracy for entry in audit.classes])
        own = 100 * (ordered[-20:].mean() - ordered[:20].mean())
        assert f"own thirds are {own:.1f} points apart" in text
        page = io.StringIO()
        print_audit(audit, page)
        assert "by the baseline" in page.getvalue()
        html = render_html(audit)
        assert "Hard for the baseline" in html
        assert "hard third</li>" not in html
