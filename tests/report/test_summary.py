"""Headlines claim what the figures support, and no more."""

import numpy as np
import pytest

from classgap.audit import Audit, AuditDiff
from classgap.audit.settings import AuditSettings
from classgap.report.summary import diff_headline

CLASSES, SAMPLES = 60, 30
TARGETS = np.repeat(np.arange(CLASSES), SAMPLES)
FAST = AuditSettings(replicates=100, map="none", check_labels=False)


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
    diff = AuditDiff.of(model(same, rng), model(same, rng), replicates=300)
    gap = diff.gap["easy_hard"]
    assert gap.interval.high < 0  # the trap: hard classes of the first look better on any second look
    assert diff_headline(diff).startswith("No clear change of the gap")


def test_a_real_change_makes_one():
    rng = np.random.default_rng(0)
    uneven = np.linspace(0.3, 0.95, CLASSES)
    diff = AuditDiff.of(model(uneven, rng), model(np.full(CLASSES, 0.85), rng), replicates=300)
    assert diff_headline(diff).startswith("The gap between easy and hard classes narrowed by")
    steeper = AuditDiff.of(model(np.linspace(0.7, 0.95, CLASSES), rng), model(uneven, rng), replicates=300)
    assert diff_headline(steeper).startswith("The gap between easy and hard classes widened by")
