"""Headlines claim what the figures support, and no more."""

import io

import numpy as np
import pytest

from classgap.audit import Audit, AuditDiff
from classgap.audit.settings import AuditSettings
from classgap.report import print_audit, print_diff, render_html
from classgap.report.summary import diff_headline, headline, sentences

CLASSES, SAMPLES = 60, 30
TARGETS = np.repeat(np.arange(CLASSES), SAMPLES)
FAST = AuditSettings(n_resamples=100, map="none", check_labels=False)


def model(accuracy_K: np.ndarray, rng: np.random.Generator) -> Audit:
    """Predictions that are right with the given chance of each class, each sample by itself."""
    right = rng.random(len(TARGETS)) < accuracy_K[TARGETS]
    return Audit.from_predictions(
        predictions=np.where(right, TARGETS, (TARGETS + 1) % CLASSES), targets=TARGETS, settings=FAST
    )


@pytest.mark.parametrize("seed", range(6))
def test_two_equally_good_models_make_no_headline(seed: int):
    rng = np.random.default_rng(seed)
    same = np.full(CLASSES, 0.85)
    diff = AuditDiff.from_audits(model(same, rng), model(same, rng), n_resamples=300)
    gap = diff.gap["easy_hard"]
    assert gap.interval.high < 0  # the trap: hard classes of the first look better on any second look
    assert diff_headline(diff).startswith("No clear change of the gap")
    page = io.StringIO()
    print_diff(diff, page)
    for text in (page.getvalue(), render_html(diff)):  # why it is not clear
        assert f"{100 * gap.expected_by_chance:.1f}".replace("-", "−") in text


def test_a_real_change_makes_one():
    rng = np.random.default_rng(0)
    uneven = np.linspace(0.3, 0.95, CLASSES)
    diff = AuditDiff.from_audits(model(uneven, rng), model(np.linspace(0.75, 0.95, CLASSES), rng), n_resamples=300)
    assert diff_headline(diff).startswith("The gap between easy and hard classes narrowed by")
    steeper = AuditDiff.from_audits(model(np.linspace(0.7, 0.95, CLASSES), rng), model(uneven, rng), n_resamples=300)
    assert diff_headline(steeper).startswith("The gap between easy and hard classes widened by")


def test_a_gap_that_turns_round_or_moves_to_other_classes_is_not_called_narrower():
    rng = np.random.default_rng(0)
    up, down = np.linspace(0.4, 0.95, CLASSES), np.linspace(0.95, 0.4, CLASSES)
    diff = AuditDiff.from_audits(model(up, rng), model(down, rng), n_resamples=300)
    gap = diff.gap["easy_hard"]
    assert gap.after < 0 < gap.before
    assert f"turned round, from {100 * gap.before:.1f} to −{-100 * gap.after:.1f} points" in diff_headline(diff)
    steeper = AuditDiff.from_audits(model(up, rng), model(np.linspace(1.0, 0.1, CLASSES), rng), n_resamples=300)
    own = steeper.gap["own_easy_hard"]
    assert own.interval.low > 0
    assert f"between each side's own thirds it widened by {100 * own.change:.1f}" in diff_headline(steeper)


@pytest.mark.parametrize(
    ("hard_after", "course"),
    [
        (37, "turned round, from 40.0 to −2.5 points:"),
        (36, "narrowed by 40.0 points:"),
        (34, "narrowed by 35.0 points:"),
    ],
)
def test_a_gap_narrows_by_no_more_than_it_was(hard_after: int, course: str):
    # Of 40 samples each, 36 are right in 20 easy and 20 medium classes; in 20 hard ones 20 before, then ``hard_after``.
    place, hard = np.tile(np.arange(40), CLASSES), np.repeat(np.arange(CLASSES) < 20, 40)
    targets = np.repeat(np.arange(CLASSES), 40)
    sides = [
        Audit.from_predictions(
            predictions=np.where(place < np.where(hard, right, 36), targets, (targets + 1) % CLASSES),
            targets=targets,
            settings=FAST,
        )
        for right in (20, hard_after)
    ]
    diff = AuditDiff.from_audits(*sides, n_resamples=300)
    gap = diff.gap["easy_hard"]
    assert gap.before + gap.interval.high > 0  # the new gap's interval reaches 0: words go by the figures they show
    assert f"The gap between easy and hard classes {course}" in diff_headline(diff)


def test_thirds_by_a_baseline_are_called_the_baseline_s():
    rng = np.random.default_rng(0)
    up, down = np.linspace(0.3, 0.95, CLASSES), np.linspace(0.95, 0.3, CLASSES)
    baseline = model(up, rng)
    for chances, found in ((up, "behind"), (down, "ahead of"), (np.full(CLASSES, 0.85), "which chance can explain")):
        other = model(chances, rng)
        audit = Audit.from_predictions(
            predictions=other.samples.predictions, targets=TARGETS, rank_by=baseline, settings=FAST
        )
        first, text = headline(audit), " ".join(sentences(audit))
        assert found in first
        assert "hard for the baseline" in first
        assert "-" not in first
        assert "est third" not in first + text
        ordered = np.sort([entry.accuracy for entry in audit.classes])
        own = 100 * (ordered[-20:].mean() - ordered[:20].mean())
        assert f"own ranking its thirds are {own:.1f} points apart" in text
        page = io.StringIO()
        print_audit(audit, page)
        assert "thirds by the baseline's ranking" in page.getvalue()
        html = render_html(audit)
        assert "Hard for the baseline" in html
        assert "hard third</li>" not in html
